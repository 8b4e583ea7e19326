//! Latencies as people read them.

use hdrhistogram::Histogram;

/// Nanoseconds as microseconds.
pub fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}

/// Quantiles and their latencies in microseconds, ten for each further nine, as far as there are samples.
pub fn distribution(histogram: &Histogram<u64>) -> Vec<(f64, f64)> {
    (0..=50)
        .map(|tenth| 10_f64.powf(f64::from(tenth) / 10.0))
        .take_while(|odds| *odds <= histogram.len() as f64)
        .map(|odds| 1.0 - 1.0 / odds)
        .map(|quantile| (quantile, micros(histogram.value_at_quantile(quantile))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distribution_ends_with_too_few_samples() {
        let mut histogram = Histogram::<u64>::new(3).expect("a histogram");
        histogram.record_n(1000, 1000).expect("a latency in range");
        let points = distribution(&histogram);
        assert_eq!(points.first(), Some(&(0.0, 1.0)));
        let (highest, _) = points[points.len() - 1];
        assert!((highest - 0.999).abs() < 1e-9, "{highest}");
    }
}
