//! Contenders that have taken turns, and how they compare.

use std::fmt;

use serde_json::{Value, json};

use crate::command_line::number::Grouped;
use crate::measuring::handover::{Distance, Probes};
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
    /// The probes around each run, in programs that have them.
    pub probes: Vec<Probes>,
}

impl Contender {
    /// A contender without runs.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), runs: Vec::new(), probes: Vec::new() }
    }

    /// The statistics of the runs' medians; `None` if there are none.
    pub fn statistics(&self) -> Option<Statistics> {
        Statistics::new(self.runs.iter().filter_map(|run| median(run)))
    }

    /// The same of the runs in which the cores had a distance.
    fn statistics_at(&self, distance: Distance, boundary: f64) -> Option<Statistics> {
        let runs = self.runs.iter().zip(&self.probes);
        let runs = runs.filter(|(_, probes)| probes.distance(boundary) == Some(distance));
        Statistics::new(runs.filter_map(|(run, _)| median(run)))
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
            "handover_nanoseconds": self.probes.iter().map(Probes::to_json).collect::<Vec<_>>(),
        })
    }
}

fn median(run: &[f64]) -> Option<f64> {
    Statistics::new(run.iter().copied()).map(|run| run.median())
}

/// How many times as much the first contender's rate is as another's.
#[derive(Debug, Clone, Copy)]
pub struct Ratio {
    /// The medians of the runs, divided.
    pub of_medians: f64,
    /// The lowest run of the first contender divided by the median of the other.
    pub of_lowest_to_median: f64,
}

impl Ratio {
    /// The ratio of two contenders; `None` if one of them has no runs, or if the other stood still.
    pub fn new(first: &Contender, other: &Contender) -> Option<Self> {
        let (first, other) = (first.statistics()?, other.statistics()?.median());
        let [of_medians, of_lowest_to_median] = [first.median(), first.min()].map(|it| it / other);
        of_medians.is_finite().then_some(Self { of_medians, of_lowest_to_median })
    }

    /// The ratio as an object.
    pub fn to_json(self) -> Value {
        json!({ "of_medians": self.of_medians, "of_lowest_to_median": self.of_lowest_to_median })
    }
}

/// Two columns, for the titles [`RATIO_TITLES`].
impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>9.3} {:>9.3}", self.of_medians, self.of_lowest_to_median)
    }
}

/// The titles of a [`Ratio`]'s columns: the median and the lowest of the first, divided by the median of each.
pub const RATIO_TITLES: &str = " first/it lowest/it";

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

/// The lines of a table of all cases: the distribution of the runs' medians, and that of the runs on near and on far
/// cores, if the probes tell them apart.
pub fn table(cases: &[Case], unit: &str) -> Vec<String> {
    let titles = ["lowest", "lower quartile", "median", "upper quartile", "highest"];
    let row = |case: &str, contender: &str, runs: &str, values: [String; 5], ratio: String| {
        let values = values.map(|value| format!("{value:>14}")).join(" ");
        format!("{case:<22} {contender:<21} {runs:>4} {values} {ratio}").trim_end().to_owned()
    };
    let mut lines =
        vec![row(unit, "contender", "runs", titles.map(str::to_owned), RATIO_TITLES.to_owned())];
    let mut push = |case: &str, contender: &str, statistics: Option<Statistics>, ratio| {
        let Some(statistics) = statistics else { return };
        let values = statistics.five_numbers().map(|value| Grouped::rounded(value).to_string());
        lines.push(row(case, contender, &statistics.count().to_string(), values, ratio));
    };
    let contenders = || cases.iter().flat_map(|case| &case.contenders);
    let boundary =
        Probes::boundary_of_two_cores(contenders().flat_map(|contender| &contender.probes));
    for case in cases {
        for contender in &case.contenders {
            let ratio = case.ratio(contender).map_or_else(String::new, |ratio| ratio.to_string());
            push(&case.name, &contender.name, contender.statistics(), ratio);
            let Some(boundary) = boundary else { continue };
            for (distance, name) in Distance::ALL {
                let statistics = contender.statistics_at(distance, boundary);
                push("", &format!("  {name}"), statistics, String::new());
            }
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
        case.contenders[0].runs = vec![vec![3e6, 5e6], vec![2e6]];
        case.contenders[1].runs = vec![vec![2e6], vec![1e6]];
        case
    }

    fn columns(line: &str) -> String {
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_table_compares_with_the_first_contender() {
        let lines = table(&[case()], "msgs/sec");
        let distribution = "2,000,000 2,500,000 3,000,000 3,500,000 4,000,000";
        assert_eq!(columns(&lines[1]), format!("32 B Rust 2 {distribution} 1.000 0.667"));
        assert!(lines[2].ends_with("2.000     1.333"), "{lines:#?}");
        assert_eq!(lines.len(), 3);
    }

    #[test]
    fn runs_on_near_and_far_cores_have_rows() {
        let mut case = case();
        let probes = |before, after| Probes { before, after };
        case.contenders[0].probes = vec![probes(60.0, 61.0), probes(62.0, 320.0)];
        case.contenders[1].probes = vec![probes(310.0, 330.0), probes(59.0, 60.0)];
        let lines: Vec<_> = table(&[case], "msgs/sec").iter().map(|line| columns(line)).collect();
        assert!(lines[2].starts_with("near cores 1 4,000,000 "), "{lines:#?}");
        // The cores of the first contender's second run came apart.
        assert!(lines[3].starts_with("32 B C 2 "), "{lines:#?}");
        assert!(lines[4].starts_with("near cores 1 1,000,000 "), "{lines:#?}");
        assert!(lines[5].starts_with("far cores 1 2,000,000 "), "{lines:#?}");
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
        assert_eq!(report["contenders"][0]["statistics"]["median"], 3e6);
        let ratio = &report["contenders"][1]["ratio_of_first_to_this"];
        assert_eq!(ratio["of_medians"], 2.0);
        assert_eq!(ratio["of_lowest_to_median"].as_f64(), Some(2.0 / 1.5));
    }
}
