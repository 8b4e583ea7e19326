//! Tables of results, in Markdown.

use super::results::{Results, Row, Values};

/// The contenders that have a measure in one of the cases, in the order of their first rows.
fn contenders<'a>(results: &'a Results, measure: &str, prefix: &str) -> Vec<&'a str> {
    let mut contenders: Vec<&str> = Vec::new();
    for row in results.rows.iter().filter(|row| row.case.starts_with(prefix)) {
        if row.measures.contains_key(measure) && !contenders.contains(&row.contender.as_str()) {
            contenders.push(&row.contender);
        }
    }
    contenders
}

/// The cases that have a measure, with and without the prefix of their names.
fn named_cases<'a>(results: &'a Results, measure: &str, prefix: &str) -> Vec<(&'a str, &'a str)> {
    let name = |case: &'a str| {
        let short = case.strip_prefix(prefix).unwrap_or(case).trim_start_matches([',', ' ']);
        if short.is_empty() { case } else { short }
    };
    let mut cases: Vec<(&str, &str)> = Vec::new();
    let rows = results.rows.iter().filter(|row| row.case.starts_with(prefix));
    for row in rows.filter(|row| row.measures.contains_key(measure)) {
        if cases.iter().all(|(case, _)| *case != row.case) {
            cases.push((&row.case, name(&row.case)));
        }
    }
    cases
}

/// The lowest, median and highest of a row's measure.
fn summary(row: &Row, measure: &str) -> Option<[f64; 3]> {
    row.measures.get(measure).and_then(Values::summary)
}

/// A table with a row for each case and a column for each contender. With `ratios`, further columns
/// have the ratio of the first contender's median to each other's.
pub fn by_contender(results: &Results, measure: &str, prefix: &str, ratios: bool) -> String {
    let contenders = contenders(results, measure, prefix);
    let cases = named_cases(results, measure, prefix);
    let of = |case: &str, contender: &str| {
        results.row(case, contender).and_then(|row| summary(row, measure))
    };
    let all = cases.iter().flat_map(|(case, _)| contenders.iter().filter_map(|it| of(case, it)));
    let scale = Scale::of(measure, all.map(|it| it[1]));
    let mut head = vec![scale.title(measure)];
    head.extend(contenders.iter().map(|it| (*it).to_owned()));
    let others = contenders.get(1..).filter(|_| ratios).unwrap_or_default();
    head.extend(others.iter().map(|it| format!("{} / {it}", contenders[0])));
    let rows = cases.iter().map(|(case, name)| {
        let mut cells = vec![(*name).to_owned()];
        cells.extend(contenders.iter().map(|it| scale.cell(of(case, it))));
        cells.extend(others.iter().map(|other| {
            let medians = of(case, contenders[0]).zip(of(case, other));
            medians.map_or_else(dash, |(first, other)| format!("{:.2}", first[1] / other[1]))
        }));
        cells
    });
    markdown(&head, rows)
}

/// A table with a row for each contender of each case and a column for each measure. The last
/// column has the ratio of the first contender's median of the first measure to each one's.
pub fn by_measure(results: &Results, measures: &[&str], prefix: &str) -> String {
    let cases = named_cases(results, measures.first().copied().unwrap_or_default(), prefix);
    let rows = || results.rows.iter().filter(|row| cases.iter().any(|(case, _)| *case == row.case));
    let scales: Vec<Scale> = measures
        .iter()
        .map(|measure| Scale::of(measure, rows().filter_map(|row| Some(summary(row, measure)?[1]))))
        .collect();
    let mut head = vec!["case".to_owned(), "contender".to_owned()];
    head.extend(scales.iter().zip(measures).map(|(scale, measure)| scale.title(measure)));
    let first = rows().next().map(|row| row.contender.as_str()).unwrap_or_default();
    head.push(format!("{first} / it"));
    let cells = cases.iter().flat_map(|(case, name)| {
        let has_any = |row: &&Row| measures.iter().any(|it| row.measures.contains_key(*it));
        let of_case = results.rows.iter().filter(|row| row.case == *case).filter(has_any);
        let of_case: Vec<&Row> = of_case.collect();
        let cells = of_case.iter().map(|row| {
            let mut cells = vec![(*name).to_owned(), row.contender.clone()];
            let values = measures.iter().zip(&scales);
            cells.extend(values.map(|(measure, scale)| scale.cell(summary(row, measure))));
            let median = |row: &Row| measures.first().and_then(|it| Some(summary(row, it)?[1]));
            let ratio = median(of_case[0]).zip(median(row)).map(|(first, own)| first / own);
            cells.push(ratio.map_or_else(dash, |ratio| format!("{ratio:.2}")));
            cells
        });
        cells.collect::<Vec<_>>()
    });
    markdown(&head, cells)
}

/// A table with a row for each goal of each contender: the case with the worst ratio of medians to
/// those of `other`, and whether the goal is met there. Of rates, more is better; of other
/// measures, less.
pub fn by_goal(
    results: &Results,
    measure: &str,
    other: &str,
    contenders: &[&str],
    goals: &[(&str, f64)],
) -> String {
    let median =
        |case: &str, contender: &str| Some(summary(results.row(case, contender)?, measure)?[1]);
    let ratio = |case: &str, contender: &str| {
        let (own, other) = (median(case, contender)?, median(case, other)?);
        Some(if measure.ends_with("/s") { own / other } else { other / own })
    };
    let head = [measure, "contender", "goal", "worst", "ratio", ""].map(str::to_owned);
    let rows = goals.iter().flat_map(|&(prefix, goal)| {
        contenders.iter().filter_map(move |contender| {
            let cases = named_cases(results, measure, prefix).into_iter();
            let ratios = cases.filter_map(|(case, name)| Some((name, ratio(case, contender)?)));
            let (name, worst) = ratios.min_by(|a, b| a.1.total_cmp(&b.1))?;
            let verdict = if worst >= goal { "met" } else { "not met" };
            let prefix = prefix.trim_end_matches(',');
            let ratios = [goal.to_string(), name.to_owned(), format!("{worst:.2}")];
            let mut cells = vec![prefix.to_owned(), (*contender).to_owned()];
            cells.extend(ratios);
            cells.push(verdict.to_owned());
            Some(cells)
        })
    });
    markdown(&head, rows)
}

fn markdown(head: &[String], rows: impl Iterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule = format!("|{}\n", "---|".repeat(head.len()));
    let rows: String = rows.map(|cells| line(&cells)).collect();
    format!("{}{rule}{rows}", line(head))
}

fn dash() -> String {
    "–".to_owned()
}

/// The unit prefix of a table's numbers. Only rates have one: `k µs` is no unit.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Scale {
    prefix: &'static str,
    factor: f64,
}

impl Scale {
    fn of(measure: &str, values: impl Iterator<Item = f64>) -> Self {
        let highest = values.fold(0.0, f64::max);
        let (prefix, factor) = match highest {
            1e6.. if measure.ends_with("/s") => ("M ", 1e6),
            1e5.. if measure.ends_with("/s") => ("k ", 1e3),
            _ => ("", 1.0),
        };
        Self { prefix, factor }
    }

    fn title(self, measure: &str) -> String {
        format!("{}{measure}", self.prefix)
    }

    /// Lowest, median and highest; the median alone if they are the same.
    fn cell(self, values: Option<[f64; 3]>) -> String {
        let Some(values) = values else { return dash() };
        let [lowest, median, highest] = values.map(|value| short(value / self.factor));
        if lowest == median && median == highest {
            return median;
        }
        format!("{lowest}, **{median}**, {highest}")
    }
}

/// A number with two or three significant digits, and with all digits before the point.
pub fn short(value: f64) -> String {
    // The limits are those from which on a number is rounded to one more digit.
    match value.abs() {
        99.95.. => format!("{value:.0}"),
        9.995.. => format!("{value:.1}"),
        0.0995.. => format!("{value:.2}"),
        0.0 => "0".to_owned(),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_keeps_three_digits() {
        for (value, text) in [(0.0, "0"), (0.0123, "0.012"), (9.996, "10.0"), (99.96, "100")] {
            assert_eq!(short(value), text);
        }
    }
}
