//! Contenders that have taken turns, and how they compare.

use serde_json::{Value, json};

use crate::command_line::number::Grouped;
use crate::measuring::statistics::Statistics;
use crate::reports::chart::Bar;

/// Contenders in the order of a round. Each round begins with another contender: streams that linger and processes that
/// end slow the run that follows.
pub fn in_turn<T>(contenders: impl IntoIterator<Item = T>, run: u32) -> Vec<T> {
    let mut contenders: Vec<T> = contenders.into_iter().collect();
    let first = run.saturating_sub(1) as usize % contenders.len().max(1);
    contenders.rotate_left(first);
    contenders
}

/// One contender of a comparison.
#[derive(Debug, Clone)]
pub struct Contender {
    /// The name of the contender.
    pub name: String,
    /// The rates of each run's slices.
    pub runs: Vec<Vec<f64>>,
}

impl Contender {
    /// A contender without runs.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), runs: Vec::new() }
    }

    /// The statistics of all slices; `None` if there are none.
    pub fn statistics(&self) -> Option<Statistics> {
        Statistics::new(self.runs.iter().flatten().copied())
    }

    /// The bar for a chart.
    pub fn bar(&self) -> Option<Bar> {
        self.statistics().map(|statistics| Bar {
            lower_quartile: statistics.lower_quartile(),
            median: statistics.median(),
            upper_quartile: statistics.upper_quartile(),
        })
    }

    fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "statistics": self.statistics().map(|statistics| statistics.to_json()),
            "runs": self.runs,
        })
    }
}

/// How many times as much the first contender's rate is as another's.
#[derive(Debug, Clone)]
pub struct Ratio {
    /// The medians of all slices, divided.
    pub of_medians: f64,
    /// The medians of the two runs of each round, divided: what other programs do to the machine for
    /// longer than a round is not in them.
    pub of_rounds: Statistics,
}

impl Ratio {
    /// The ratio of two contenders; `None` if one of them has no runs.
    pub fn new(first: &Contender, other: &Contender) -> Option<Self> {
        let medians = first.statistics()?.median() / other.statistics()?.median();
        let median = |run: &Vec<f64>| Statistics::new(run.iter().copied()).map(|run| run.median());
        let rounds = first.runs.iter().zip(&other.runs);
        let of_rounds = rounds.filter_map(|(first, other)| Some(median(first)? / median(other)?));
        // A contender that stood still has no ratio.
        let of_rounds = Statistics::new(of_rounds.filter(|ratio| ratio.is_finite()))?;
        medians.is_finite().then_some(Self { of_medians: medians, of_rounds })
    }

    fn to_json(&self) -> Value {
        json!({ "of_medians": self.of_medians, "of_rounds": self.of_rounds.to_json() })
    }
}

/// Contenders that were measured under the same conditions.
#[derive(Debug, Clone)]
pub struct Case {
    /// The conditions.
    pub name: String,
    /// The contenders; ratios are of the first to the others.
    pub contenders: Vec<Contender>,
}

impl Case {
    /// A case whose contenders have no runs yet.
    pub fn new(
        name: impl Into<String>,
        contenders: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Self { name: name.into(), contenders: contenders.into_iter().map(Contender::new).collect() }
    }

    /// How many times as fast as another contender the first one is.
    pub fn ratio(&self, other: &Contender) -> Option<Ratio> {
        self.contenders.first().and_then(|first| Ratio::new(first, other))
    }

    /// The case as an object.
    pub fn to_json(&self) -> Value {
        let contenders: Vec<Value> = self
            .contenders
            .iter()
            .map(|contender| {
                let mut object = contender.to_json();
                object["ratio_of_first_to_this"] =
                    self.ratio(contender).map_or(Value::Null, |ratio| ratio.to_json());
                object
            })
            .collect();
        json!({ "name": self.name, "contenders": contenders })
    }
}

/// The lines of a table of all cases.
pub fn table(cases: &[Case], unit: &str) -> Vec<String> {
    let mut lines = vec![format!(
        "{:<22} {:<12} {:>4} {:>6} {:>15} {:>15} {:>15} {:>9}  {}",
        unit,
        "contender",
        "runs",
        "slices",
        "lower quartile",
        "median",
        "upper quartile",
        "first/it",
        "by round (quartiles)"
    )];
    for case in cases {
        for contender in &case.contenders {
            let Some(statistics) = contender.statistics() else { continue };
            let ratio = case.ratio(contender).map_or_else(String::new, |ratio| {
                format!(
                    "{:>9.3}  {:.3} ({:.3} to {:.3})",
                    ratio.of_medians,
                    ratio.of_rounds.median(),
                    ratio.of_rounds.lower_quartile(),
                    ratio.of_rounds.upper_quartile()
                )
            });
            let line = format!(
                "{:<22} {:<12} {:>4} {:>6} {:>15} {:>15} {:>15} {ratio}",
                case.name,
                contender.name,
                contender.runs.len(),
                statistics.count(),
                Grouped::rounded(statistics.lower_quartile()),
                Grouped::rounded(statistics.median()),
                Grouped::rounded(statistics.upper_quartile()),
            );
            lines.push(line.trim_end().to_owned());
        }
    }
    if lines.len() == 1 {
        lines.push("Nothing to compare: it ended before a run had".to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_contender_is_the_first_of_a_round() {
        let rounds: Vec<Vec<char>> = (1..=4).map(|run| in_turn("abc".chars(), run)).collect();
        assert_eq!(rounds, [['a', 'b', 'c'], ['b', 'c', 'a'], ['c', 'a', 'b'], ['a', 'b', 'c']]);
        assert_eq!(in_turn([(); 0], 3).len(), 0);
    }

    fn case() -> Case {
        let mut case = Case::new("32 B", ["Rust", "C"]);
        case.contenders[0].runs = vec![vec![3e6, 5e6], vec![4e6]];
        case.contenders[1].runs = vec![vec![2e6], vec![1e6]];
        case
    }

    #[test]
    fn the_table_compares_with_the_first_contender() {
        let lines = table(&[case()], "msgs/sec");
        let columns: Vec<&str> = lines[1].split_whitespace().collect();
        assert_eq!(
            columns,
            "32 B Rust 2 3 3,500,000 4,000,000 4,500,000 1.000 1.000 (1.000 to 1.000)"
                .split(' ')
                .collect::<Vec<_>>()
        );
        assert!(lines[2].ends_with("2.667  3.000 (2.500 to 3.500)"), "{lines:#?}");
    }

    #[test]
    fn a_contender_without_runs_is_left_out() {
        let mut case = case();
        case.contenders[0].runs.clear();
        assert!(case.ratio(&case.contenders[1]).is_none());
        assert_eq!(table(&[case], "msgs/sec").len(), 2);
        let lines = table(&[Case::new("none", ["Rust"])], "msgs/sec");
        assert!(lines[1].starts_with("Nothing to compare"));
    }

    #[test]
    fn a_contender_that_stood_still_has_no_ratio() {
        let mut case = case();
        case.contenders[1].runs = vec![vec![0.0], vec![0.0]];
        assert!(case.ratio(&case.contenders[1]).is_none());
    }

    #[test]
    fn the_report_has_statistics_and_ratios() {
        let report = case().to_json();
        assert_eq!(report["contenders"][0]["statistics"]["median"], 4e6);
        assert_eq!(report["contenders"][1]["ratio_of_first_to_this"]["of_rounds"]["median"], 3.0);
    }
}
