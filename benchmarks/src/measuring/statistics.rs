//! Mean, median and the like.

use serde_json::{Value, json};

/// Rates, sorted.
#[derive(Debug, Clone, PartialEq)]
pub struct Statistics {
    sorted: Vec<f64>,
}

impl Statistics {
    /// The statistics of some rates; `None` if there are none.
    pub fn new(rates: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = rates.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        if sorted.is_empty() { None } else { Some(Self { sorted }) }
    }

    /// How many rates there are; at least one.
    pub fn count(&self) -> usize {
        self.sorted.len()
    }

    /// The lowest rate.
    pub fn min(&self) -> f64 {
        self.quantile(0.0)
    }

    /// The highest rate.
    pub fn max(&self) -> f64 {
        self.quantile(1.0)
    }

    /// The rate that as many are below as above.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// The rate that a quarter is below.
    pub fn lower_quartile(&self) -> f64 {
        self.quantile(0.25)
    }

    /// The rate that a quarter is above.
    pub fn upper_quartile(&self) -> f64 {
        self.quantile(0.75)
    }

    /// Lowest, lower quartile, median, upper quartile and highest.
    pub fn five_numbers(&self) -> [f64; 5] {
        [self.min(), self.lower_quartile(), self.median(), self.upper_quartile(), self.max()]
    }

    /// The rate at a fraction of the way from the lowest to the highest, linear between neighbours.
    fn quantile(&self, fraction: f64) -> f64 {
        let rank = fraction * (self.sorted.len() - 1) as f64;
        let below = self.sorted[rank.floor() as usize];
        let above = self.sorted[rank.ceil() as usize];
        below + (above - below) * rank.fract()
    }

    /// The statistics as an object.
    pub fn to_json(&self) -> Value {
        json!({
            "count": self.count(),
            "median": self.median(),
            "min": self.min(),
            "max": self.max(),
            "lower_quartile": self.lower_quartile(),
            "upper_quartile": self.upper_quartile(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_has_no_statistics() {
        assert_eq!(Statistics::new([]), None);
    }

    #[test]
    fn one_rate_is_everything() {
        let statistics = Statistics::new([7.0]).expect("a rate");
        let quartiles = [statistics.lower_quartile(), statistics.upper_quartile()];
        assert_eq!(quartiles, [7.0; 2]);
        assert_eq!([statistics.min(), statistics.median(), statistics.max()], [7.0; 3]);
    }

    #[test]
    fn quantiles_are_linear_between_neighbours() {
        let statistics = Statistics::new([4.0, 1.0, 3.0, 2.0]).expect("rates");
        assert_eq!(statistics.count(), 4);
        assert_eq!((statistics.min(), statistics.max()), (1.0, 4.0));
        assert_eq!(statistics.median(), 2.5);
        assert_eq!((statistics.lower_quartile(), statistics.upper_quartile()), (1.75, 3.25));
    }
}
