//! Charts, as SVG.

use std::fmt::Display;
use std::ops::Range;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::command_line::failure::Failure;

const WIDTH: u32 = 1100;
const HEIGHT: u32 = 560;
const FONT: &str = "sans-serif";
/// Colours that can be told apart without seeing red or green (Okabe and Ito).
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(213, 94, 0),
    RGBColor(90, 90, 90),
];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// The lines above a chart.
#[derive(Debug, Clone)]
pub struct Heading {
    /// The subject of the chart.
    pub title: String,
    /// Machine, versions and settings, which a reader of the chart needs.
    pub notes: Vec<String>,
}

/// The median of some samples, and the half of them around it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bar {
    /// A quarter is below it.
    pub lower_quartile: f64,
    /// The height of the bar.
    pub median: f64,
    /// A quarter is above it.
    pub upper_quartile: f64,
}

/// Bars in groups, with their quartiles as whiskers.
#[derive(Debug, Clone)]
pub struct BarChart {
    /// Title and notes.
    pub heading: Heading,
    /// The unit of the bars' heights.
    pub unit: String,
    /// The names of the bars in each group, which share a colour across the groups.
    pub series: Vec<String>,
    /// The names of the groups, each with an optional bar for each of the series.
    pub groups: Vec<(String, Vec<Option<Bar>>)>,
    /// `true` if the groups can be compared with each other. If not, each group has its own scale, which
    /// shows the differences within the group.
    pub has_common_scale: bool,
}

/// Latencies by percentile, both on logarithmic scales.
#[derive(Debug, Clone)]
pub struct PercentileChart {
    /// Title and notes.
    pub heading: Heading,
    /// The names of the lines, with quantiles below 1 and their latencies in microseconds.
    pub lines: Vec<(String, Vec<(f64, f64)>)>,
}

impl BarChart {
    /// Writes the chart.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        write(path, |area| self.draw(area))
    }

    fn draw(&self, root: &Area<'_>) -> Drawn {
        let area = draw_heading(root, &self.heading)?;
        let groups_per_panel = if self.has_common_scale { self.groups.len().max(1) } else { 1 };
        let panels: Vec<_> = self.groups.chunks(groups_per_panel).collect();
        let areas = area.split_evenly((1, panels.len().max(1)));
        for (index, (panel, area)) in panels.iter().zip(&areas).enumerate() {
            self.draw_panel(root, area, panel, index == 0, index + 1 == panels.len())?;
        }
        Ok(())
    }

    fn draw_panel(
        &self,
        root: &Area<'_>,
        area: &Area<'_>,
        groups: &[(String, Vec<Option<Bar>>)],
        has_unit: bool,
        has_legend: bool,
    ) -> Drawn {
        let bars = groups.iter().flat_map(|(_, bars)| bars).flatten();
        let highest = bars.map(|bar| bar.upper_quartile.max(bar.median)).fold(0.0, f64::max);
        // The legend is above the bars.
        let top = if highest > 0.0 { highest * 1.35 } else { 1.0 };
        let mut chart = ChartBuilder::on(area)
            .margin(8)
            .x_label_area_size(32)
            .y_label_area_size(if has_unit { 76 } else { 52 })
            .build_cartesian_2d(0.0..groups.len().max(1) as f64, 0.0..top)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .disable_x_axis()
            .light_line_style(TRANSPARENT)
            .y_desc(if has_unit { &self.unit } else { "" })
            .y_label_formatter(&|value| short(*value))
            .label_style((FONT, 14))
            .draw()?;
        // A tenth of each group's width is left free on both sides.
        let width = 0.8 / self.series.len().max(1) as f64;
        for (index, name) in self.series.iter().enumerate() {
            let colour = COLOURS[index % COLOURS.len()];
            let bars = groups.iter().enumerate().filter_map(|(group, (_, bars))| {
                let left = group as f64 + 0.1 + index as f64 * width;
                bars.get(index).copied().flatten().map(|bar| (left, bar))
            });
            let bars: Vec<_> = bars.collect();
            chart
                .draw_series(bars.iter().map(|(left, bar)| {
                    let right = left + width * 0.92;
                    Rectangle::new([(*left, 0.0), (right, bar.median)], colour.filled())
                }))?
                .label(name)
                .legend(move |(x, y)| {
                    Rectangle::new([(x, y - 5), (x + 12, y + 5)], colour.filled())
                });
            chart.draw_series(bars.iter().map(|(left, bar)| {
                let middle = left + width * 0.46;
                let ends = vec![(middle, bar.lower_quartile), (middle, bar.upper_quartile)];
                PathElement::new(ends, BLACK.stroke_width(2))
            }))?;
        }
        let centred = (FONT, 14).into_font().color(&BLACK).pos(Pos::new(HPos::Center, VPos::Top));
        for (group, (name, _)) in groups.iter().enumerate() {
            let (x, y) = chart.backend_coord(&(group as f64 + 0.5, 0.0));
            root.draw(&Text::new(name.clone(), (x, y + 8), centred.clone()))?;
        }
        if !has_legend {
            return Ok(());
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.2))
            .label_font((FONT, 14))
            .draw()?;
        Ok(())
    }
}

impl PercentileChart {
    /// Writes the chart.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        write(path, |area| self.draw(area))
    }

    fn draw(&self, root: &Area<'_>) -> Drawn {
        let area = draw_heading(root, &self.heading)?;
        let latencies = || self.lines.iter().flat_map(|(_, points)| points).map(|point| point.1);
        let range = logarithmic(latencies());
        let mut chart = ChartBuilder::on(&area)
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(80)
            .build_cartesian_2d((1.0..1e5f64).log_scale(), range.log_scale())?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc("percentile")
            .y_desc("µs")
            .x_label_formatter(&|odds| percentile_label(*odds))
            .y_label_formatter(&|value| short(*value))
            .label_style((FONT, 14))
            .draw()?;
        for (index, (name, points)) in self.lines.iter().enumerate() {
            let colour = COLOURS[index % COLOURS.len()];
            // One message in so many is slower.
            let points =
                points.iter().map(|(quantile, latency)| (1.0 / (1.0 - quantile), *latency));
            chart.draw_series(LineSeries::new(points, colour.stroke_width(2)))?.label(name).legend(
                move |(x, y)| Rectangle::new([(x, y - 2), (x + 12, y + 2)], colour.filled()),
            );
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.2))
            .label_font((FONT, 14))
            .draw()?;
        Ok(())
    }
}

fn write(path: &Path, draw: impl FnOnce(&Area<'_>) -> Drawn) -> Result<(), Failure> {
    let root = SVGBackend::new(path, (WIDTH, HEIGHT)).into_drawing_area();
    let drawn = root.fill(&WHITE).map_err(Into::into).and_then(|()| draw(&root));
    drawn
        .and_then(|()| Ok(root.present()?))
        .map_err(|error| Failure::run(format_args!("cannot write {}", path.display()), error))
}

/// Draws the title and the notes, and returns the area below.
fn draw_heading<'a>(
    root: &Area<'a>,
    heading: &Heading,
) -> Result<Area<'a>, Box<dyn std::error::Error>> {
    const TITLE: i32 = 34;
    const NOTE: i32 = 17;
    root.draw(&Text::new(heading.title.clone(), (16, 12), (FONT, 20).into_font()))?;
    let grey = (FONT, 13).into_font().color(&BLACK.mix(0.7));
    let mut y = TITLE + 4;
    for note in &heading.notes {
        root.draw(&Text::new(note.clone(), (16, y), grey.clone()))?;
        y += NOTE;
    }
    Ok(root.split_vertically(y).1)
}

/// A range around some values that a logarithmic scale can have.
fn logarithmic(values: impl Iterator<Item = f64>) -> Range<f64> {
    let (low, high) = values
        .filter(|value| *value > 0.0)
        .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    if high > 0.0 { low / 1.5..high * 1.5 } else { 0.1..10.0 }
}

/// The label of the percentile that one message in so many is beyond: 99.9 for 1000.
fn percentile_label(odds: f64) -> String {
    let percentile = 100.0 * (1.0 - 1.0 / odds);
    let digits = (odds.log10().round() as usize).saturating_sub(2);
    format!("{percentile:.digits$}")
}

/// A number with a unit prefix: `190M`.
fn short(value: f64) -> String {
    let scaled = |scale: f64, suffix: &str| {
        let text = format!("{:.2}", value / scale);
        let text = text.trim_end_matches('0').trim_end_matches('.');
        format!("{text}{suffix}")
    };
    match value {
        _ if value >= 1e9 => scaled(1e9, "G"),
        _ if value >= 1e6 => scaled(1e6, "M"),
        _ if value >= 1e4 => scaled(1e3, "k"),
        _ => scaled(1.0, ""),
    }
}

/// Settings as one note: `messages: 32 B, idle: yield`.
pub fn settings_note(settings: &[(&str, &dyn Display)]) -> String {
    let settings: Vec<String> =
        settings.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    settings.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heading() -> Heading {
        Heading { title: "A & <B>".to_owned(), notes: vec!["Some CPU(R) \"X\" & Y".to_owned()] }
    }

    fn texts(path: &Path) -> Vec<String> {
        let text = std::fs::read_to_string(path).expect("a chart");
        let document = roxmltree::Document::parse(&text).expect("well-formed XML");
        assert_eq!(document.root_element().tag_name().name(), "svg");
        let texts = document.descendants().filter(|node| node.has_tag_name("text"));
        texts.filter_map(|node| node.text()).map(|text| text.trim().to_owned()).collect()
    }

    #[test]
    fn bars_are_named_and_their_heights_told() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("bars.svg");
        let bar = |median| {
            Some(Bar { lower_quartile: median / 2.0, median, upper_quartile: median * 1.5 })
        };
        for has_common_scale in [true, false] {
            BarChart {
                heading: heading(),
                unit: "messages per second".to_owned(),
                series: vec!["Rust".to_owned(), "C".to_owned()],
                groups: vec![
                    ("32 B".to_owned(), vec![bar(2e8), bar(1e8)]),
                    ("64 B".to_owned(), vec![bar(1.5e5), None]),
                ],
                has_common_scale,
            }
            .write(&path)
            .expect("a chart");
            let texts = texts(&path);
            let expected = [
                "A & <B>",
                "Some CPU(R) \"X\" & Y",
                "messages per second",
                "Rust",
                "C",
                "32 B",
                "64 B",
                "100M",
            ];
            for text in expected {
                assert!(texts.iter().any(|found| found == text), "{text} not in {texts:?}");
            }
            assert_eq!(texts.iter().any(|found| found == "100k"), !has_common_scale, "{texts:?}");
        }
    }

    #[test]
    fn percentiles_are_on_the_axis() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("percentiles.svg");
        let points = vec![(0.0, 0.5), (0.5, 1.0), (0.99, 20.0), (0.9999, 300.0)];
        PercentileChart { heading: heading(), lines: vec![("Rust".to_owned(), points)] }
            .write(&path)
            .expect("a chart");
        let texts = texts(&path);
        for text in ["Rust", "µs", "0", "90", "99", "99.9", "99.99", "100"] {
            assert!(texts.iter().any(|found| found == text), "{text} not in {texts:?}");
        }
    }

    #[test]
    fn charts_without_data_can_be_drawn() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("empty.svg");
        let (series, groups, unit) = (Vec::new(), Vec::new(), String::new());
        BarChart { heading: heading(), unit, series, groups, has_common_scale: true }
            .write(&path)
            .expect("a chart");
        texts(&path);
        let lines = vec![("none".to_owned(), Vec::new())];
        PercentileChart { heading: heading(), lines }.write(&path).expect("a chart");
        texts(&path);
    }

    #[test]
    fn a_chart_that_cannot_be_written_is_an_error() {
        let chart = PercentileChart { heading: heading(), lines: Vec::new() };
        assert!(chart.write(Path::new("/no/such/directory/x.svg")).is_err());
    }

    #[test]
    fn numbers_are_short() {
        let cases = [(0.0, "0"), (0.25, "0.25"), (300.0, "300"), (25e3, "25k"), (1.9e8, "190M")];
        for (value, text) in cases {
            assert_eq!(short(value), text);
        }
    }

    #[test]
    fn percentiles_have_the_digits_they_need() {
        for (odds, text) in [(1.0, "0"), (10.0, "90"), (100.0, "99"), (1e3, "99.9"), (1e4, "99.99")]
        {
            assert_eq!(percentile_label(odds), text);
        }
    }
}
