//! Charts, as SVG.

use std::fmt::Write;

const WIDTH: f64 = 1100.0;
const HEIGHT: f64 = 460.0;
/// Where the bars are: left, top, right and bottom of the drawing.
const PLOT: [f64; 4] = [70.0, 120.0, 1080.0, 420.0];
/// Colours that can be told apart without seeing red or green (Okabe and Ito).
const COLOURS: [&str; 7] =
    ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#5a5a5a"];

/// A bar with a whisker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bar {
    /// The lower end of the whisker.
    pub lowest: f64,
    /// The height of the bar.
    pub median: f64,
    /// The upper end of the whisker.
    pub highest: f64,
}

/// Bars in groups, with their spread as whiskers. Each group has its own scale, and the number
/// above a bar tells its height.
#[derive(Debug, Clone)]
pub struct BarChart {
    /// The subject of the chart.
    pub title: String,
    /// Machine, versions and settings, which a reader of the chart needs.
    pub notes: Vec<String>,
    /// The unit of the bars' heights.
    pub unit: String,
    /// The names of the bars in each group, which share a colour across the groups.
    pub series: Vec<String>,
    /// The names of the groups, each with an optional bar for each of the series.
    pub groups: Vec<(String, Vec<Option<Bar>>)>,
}

impl BarChart {
    /// The chart as a text of SVG.
    pub fn to_svg(&self) -> String {
        let [left, top, right, bottom] = PLOT;
        let mut svg = Svg(String::new());
        svg.0 += &format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
             font-size=\"13\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
        );
        svg.text([16.0, 28.0], "font-size=\"20\"", &self.title);
        for (note, y) in self.notes.iter().zip((0..).map(|line| 48.0 + 17.0 * f64::from(line))) {
            svg.text([16.0, y], "fill=\"#555\"", note);
        }
        let mut x = left;
        for (name, colour) in self.series.iter().zip(COLOURS.iter().cycle()) {
            svg.rect([x, top - 28.0, 12.0, 12.0], colour);
            svg.text([x + 17.0, top - 17.0], "", name);
            x += 34.0 + 7.5 * name.chars().count() as f64;
        }
        svg.text([16.0, bottom + 34.0], "fill=\"#555\"", &self.unit);
        svg.line([left, bottom, right, bottom], "#333");
        let width = (right - left) / self.groups.len().max(1) as f64;
        for (index, (name, bars)) in self.groups.iter().enumerate() {
            let highest = bars.iter().flatten().map(|bar| bar.highest.max(bar.median));
            let scale = highest.fold(f64::MIN_POSITIVE, f64::max);
            let start = left + width * index as f64;
            let step = 0.8 * width / self.series.len().max(1) as f64;
            for (number, bar) in bars.iter().enumerate() {
                let Some(bar) = bar else { continue };
                let x = start + 0.1 * width + step * number as f64;
                let y = |value: f64| bottom - value / scale * (bottom - top);
                let colour = COLOURS[number % COLOURS.len()];
                svg.rect([x, y(bar.median), step * 0.92, bottom - y(bar.median)], colour);
                let middle = x + step * 0.46;
                svg.line([middle, y(bar.lowest), middle, y(bar.highest)], "#000");
                let label = [middle, y(bar.highest.max(bar.median)) - 4.0];
                svg.text(label, "text-anchor=\"middle\" font-size=\"10\"", &short(bar.median));
            }
            let label = [start + width / 2.0, bottom + 17.0];
            svg.text(label, "text-anchor=\"middle\"", name);
        }
        svg.0 + "</svg>\n"
    }
}

/// The elements of a drawing.
struct Svg(String);

impl Svg {
    fn text(&mut self, [x, y]: [f64; 2], attributes: &str, text: &str) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        self.element(format_args!("<text x=\"{x:.1}\" y=\"{y:.1}\" {attributes}>{text}</text>"));
    }

    fn rect(&mut self, [x, y, width, height]: [f64; 4], colour: &str) {
        self.element(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\"/>"
        ));
    }

    fn line(&mut self, [x1, y1, x2, y2]: [f64; 4], colour: &str) {
        self.element(format_args!(
            "<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\" stroke=\"{colour}\"/>"
        ));
    }

    fn element(&mut self, element: std::fmt::Arguments<'_>) {
        // A text takes everything.
        let _ = writeln!(self.0, "{element}");
    }
}

/// A number with a unit prefix: `190M`.
fn short(value: f64) -> String {
    let (scaled, prefix) = match value {
        1e6.. => (value / 1e6, "M"),
        1e4.. => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let text = super::table::short(scaled);
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{prefix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chart_has_titles_names_and_heights() {
        let bar = |median| Some(Bar { lowest: median / 2.0, median, highest: median * 1.5 });
        let svg = BarChart {
            title: "A & <B>".to_owned(),
            notes: vec!["a CPU".to_owned()],
            unit: "messages per second".to_owned(),
            series: vec!["Rust".to_owned(), "C".to_owned()],
            groups: vec![
                ("32 B".to_owned(), vec![bar(2e8), bar(0.25)]),
                ("64 B".to_owned(), vec![bar(1.5e5), None]),
            ],
        }
        .to_svg();
        for text in ["A &amp; &lt;B&gt;", "a CPU", "Rust", "C", "32 B", "200M", "150k", "0.25"] {
            assert!(svg.contains(&format!(">{text}</text>")), "{text} not in {svg}");
        }
        // The highest bar of each group is as high as that of the other.
        assert_eq!(svg.matches(" y=\"220.0\" ").count(), 2, "{svg}");
    }
}
