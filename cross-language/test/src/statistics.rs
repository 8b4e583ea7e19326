//! Statistics of samples.

/// Samples below which a run's 95th percentile is not shown. 50 of them lie above it.
pub const LEAST_FOR_P95: usize = 1_000;
/// Samples below which a run's 99th percentile is not shown. 100 of them lie above it.
pub const LEAST_FOR_P99: usize = 10_000;

/// Statistics of a run's samples, in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Statistics {
    /// Samples farther than 1.5 interquartile ranges from the quartiles.
    pub outliers: usize,
    /// Of the samples without outliers.
    pub mean: f64,
    /// Of all samples. Without outliers, the median of waits that are mostly short would be too low.
    pub median: f64,
    /// Of all samples. `None` if there are fewer than [`LEAST_FOR_P95`].
    pub p95: Option<f64>,
    /// Of all samples. `None` if there are fewer than [`LEAST_FOR_P99`].
    pub p99: Option<f64>,
    /// Of all samples.
    pub max: f64,
}

impl Statistics {
    /// Returns `None` if there are no samples.
    pub fn of(mut samples: Vec<f64>) -> Option<Self> {
        samples.sort_unstable_by(f64::total_cmp);
        let max = *samples.last()?;
        let (first, third) = (quantile(&samples, 0.25), quantile(&samples, 0.75));
        let reach = 1.5 * (third - first);
        let inner: Vec<f64> = samples
            .iter()
            .copied()
            .filter(|sample| (first - reach..=third + reach).contains(sample))
            .collect();
        Some(Self {
            outliers: samples.len() - inner.len(),
            mean: inner.iter().sum::<f64>() / inner.len() as f64,
            median: quantile(&samples, 0.5),
            p95: (samples.len() >= LEAST_FOR_P95).then(|| quantile(&samples, 0.95)),
            p99: (samples.len() >= LEAST_FOR_P99).then(|| quantile(&samples, 0.99)),
            max,
        })
    }
}

/// The quantile of sorted values, between two of them in proportion.
pub fn quantile(sorted: &[f64], quantile: f64) -> f64 {
    let position = quantile * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[position.floor() as usize], sorted[position.ceil() as usize]);
    below + (above - below) * position.fract()
}

/// Median, least and greatest of some values. `None` if there are none.
pub fn spread(mut values: Vec<f64>) -> Option<(f64, f64, f64)> {
    values.sort_unstable_by(f64::total_cmp);
    Some((*values.first()?, quantile(&values, 0.5), *values.last()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outliers_are_left_out_of_mean_only() {
        let samples = (1..=99).map(f64::from).chain([1e6]).rev().collect();
        let statistics = Statistics::of(samples).unwrap();
        assert_eq!(statistics.outliers, 1);
        assert_eq!((statistics.mean, statistics.median), (50.0, 50.5));
        assert_eq!(statistics.max, 1e6);
    }

    #[test]
    fn tails_need_samples() {
        let of = |count: u32| Statistics::of((1..=count).map(f64::from).collect()).unwrap();
        assert_eq!((of(999).p95, of(999).p99), (None, None));
        let (some, many) = (of(1_001), of(10_001));
        assert_eq!((some.p95, some.p99), (Some(951.0), None));
        assert_eq!((many.p95, many.p99), (Some(9_501.0), Some(9_901.0)));
    }

    #[test]
    fn equal_samples_have_no_outliers() {
        let statistics = Statistics::of(vec![7.0; 10]).unwrap();
        assert_eq!((statistics.outliers, statistics.mean, statistics.median), (0, 7.0, 7.0));
        assert_eq!(Statistics::of(Vec::new()), None);
    }

    #[test]
    fn spread_is_around_median() {
        assert_eq!(spread(vec![3.0, 1.0, 2.0]), Some((1.0, 2.0, 3.0)));
        assert_eq!(spread(Vec::new()), None);
    }
}
