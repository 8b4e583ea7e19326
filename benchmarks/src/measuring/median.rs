//! The median.

/// The median of some values, linear between the two in the middle; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len().checked_sub(1)? as f64 / 2.0;
    Some((sorted[middle.floor() as usize] + sorted[middle.ceil() as usize]) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_between_the_middle_values() {
        for (values, expected) in [
            (vec![], None),
            (vec![7.0], Some(7.0)),
            (vec![4.0, 1.0, 3.0, 2.0], Some(2.5)),
            (vec![9.0, 1.0, 3.0], Some(3.0)),
        ] {
            assert_eq!(median(&values), expected);
        }
    }
}
