//! Pages whose tables and charts come from results files.
//!
//! A page has blocks such as
//!
//! ```text
//! <!-- results: ipc-throughput | contenders | msgs/s | exclusive -->
//! …
//! <!-- end -->
//! ```
//!
//! with the name of a file in `results/`, a kind of block, its measures and the prefix of the cases
//! that it shows:
//!
//! - `contenders`: a table with a row for each case and a column for each contender, of one
//!   measure, and their ratios;
//! - `values`: the same without ratios;
//! - `measures`: a table with a row for each contender of each case and a column for each measure,
//!   separated by commas;
//! - `goals`: a table of the ratios that contenders shall reach, each with its worst case. Three
//!   more fields are the contender they are compared with; the contenders, separated by semicolons;
//!   and prefixes of cases, each with its ratio, separated by semicolons.
//! - `chart`: bars of one measure in `charts/`, titled by one more field;
//! - `origin`: command, date, machine and versions.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use rusteron_core::program::Failure;

use crate::reports::chart::{Bar, BarChart};
use crate::reports::results::Results;
use crate::reports::table;

/// Renders the tables and charts of pages from the files in docs/benchmarks/results.
///
/// The pages are BENCHMARKS.md and those of docs/benchmarks that have blocks of results.
#[derive(Debug, Clone, Args)]
pub struct RenderOptions {
    /// Write nothing, and fail if a page or chart differs from its results
    #[arg(long)]
    check: bool,

    /// The folder of the repository [default: the one that this program was built from]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

/// Renders all pages.
///
/// # Errors
/// [`Failure::Run`] if a page cannot be rendered, or differs.
pub fn run(options: &RenderOptions) -> Result<(), Failure> {
    let root =
        options.root.clone().unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    let docs = root.join("docs").join("benchmarks");
    let unreadable = |error| Failure::run(docs.display(), error);
    let mut paths = vec![root.join("BENCHMARKS.md")];
    for entry in fs::read_dir(&docs).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            paths.push(path);
        }
    }
    let mut different = Vec::new();
    for path in paths {
        for file in render(&path, &docs)? {
            if fs::read_to_string(&file.path).is_ok_and(|text| text == file.text) {
                continue;
            }
            if !options.check {
                let written = fs::write(&file.path, &file.text);
                written.map_err(|error| Failure::run(file.path.display(), error))?;
            }
            different.push(file.path.display().to_string());
        }
    }
    if options.check && !different.is_empty() {
        let files = different.join(", ");
        return Err(Failure::run("`just benchmark render` would change", files));
    }
    Ok(())
}

const BEGIN: &str = "<!-- results:";
const END: &str = "<!-- end -->";

/// A file that rendering makes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rendered {
    /// Where it belongs.
    path: PathBuf,
    /// Its text.
    text: String,
}

/// Renders a page, and returns it and its charts. `docs` is the folder with `results/` and
/// `charts/`.
fn render(page: &Path, docs: &Path) -> Result<Vec<Rendered>, Failure> {
    let text = fs::read_to_string(page).map_err(|error| Failure::run(page.display(), error))?;
    let mut files = Vec::new();
    let mut rendered = String::new();
    let mut rest = text.as_str();
    while let Some((before, block)) = rest.split_once(BEGIN) {
        let parts = block
            .split_once("-->\n")
            .and_then(|(fields, block)| Some((fields, block.split_once(END)?.1)));
        let Some((fields, after)) = parts else {
            return Err(Failure::run(page.display(), "a block of results has no end"));
        };
        let body = render_block(fields, docs, &mut files).map_err(|failure| {
            Failure::run(format_args!("{}:{fields}", page.display()), failure)
        })?;
        rendered += &format!("{before}{BEGIN}{fields}-->\n{body}{END}");
        rest = after;
    }
    files.push(Rendered { path: page.to_owned(), text: rendered + rest });
    Ok(files)
}

fn render_block(fields: &str, docs: &Path, files: &mut Vec<Rendered>) -> Result<String, Failure> {
    let fields: Vec<&str> = fields.split('|').map(str::trim).collect();
    let field = |index: usize| fields.get(index).copied().unwrap_or_default();
    let results = Results::read(&docs.join("results").join(field(0)).with_extension("json"))?;
    let (measure, prefix) = (field(2), field(3));
    let table = match field(1) {
        "origin" => return Ok(origin(&results)),
        "chart" => {
            let (name, chart) = chart(&results, measure, prefix, field(4));
            let path = docs.join("charts").join(&name);
            files.push(Rendered { path, text: chart.to_svg() });
            return Ok(format!("![{}](charts/{name})\n", field(4)));
        }
        "contenders" => table::by_contender(&results, measure, prefix, true),
        "values" => table::by_contender(&results, measure, prefix, false),
        "measures" => {
            let measures: Vec<&str> = measure.split(',').map(str::trim).collect();
            table::by_measure(&results, &measures, prefix)
        }
        "goals" => {
            let contenders: Vec<&str> = field(4).split(';').map(str::trim).collect();
            table::by_goal(&results, measure, field(3), &contenders, &goals(field(5))?)
        }
        other => return Err(Failure::Run(format!("unknown kind of block: {other:?}"))),
    };
    if table.lines().count() < 3 {
        return Err(Failure::Run("no row has such a case and measure".to_owned()));
    }
    // Markdown needs an empty line before a table.
    Ok(format!("\n{table}\n"))
}

/// Prefixes of cases, each with how many times as good as the other contender one shall be there.
fn goals<'a>(text: &'a str) -> Result<Vec<(&'a str, f64)>, Failure> {
    let goal = |text: &'a str| {
        let (prefix, ratio) = text.trim().rsplit_once(' ')?;
        Some((prefix, ratio.parse().ok()?))
    };
    let refused = |it| Failure::Run(format!("not a prefix and a ratio: {it:?}"));
    text.split(';').map(|it| goal(it).ok_or_else(|| refused(it))).collect()
}

fn origin(results: &Results) -> String {
    let Results { command, date, machine, versions, .. } = results;
    format!("`{command}`, {date}. {machine}. {versions}.\n")
}

fn chart(results: &Results, measure: &str, prefix: &str, title: &str) -> (String, BarChart) {
    let series = table::contenders(results, measure, prefix);
    let group = |(case, name): (&str, &str)| {
        let bar = |contender: &&str| {
            let [lowest, median, highest] = table::summary(results.row(case, contender)?, measure)?;
            Some(Bar { lowest, median, highest })
        };
        (name.to_owned(), series.iter().map(bar).collect())
    };
    let cases = table::named_cases(results, measure, prefix);
    let chart = BarChart {
        title: title.to_owned(),
        notes: vec![format!("{}; {}", results.machine, results.date), results.versions.clone()],
        unit: format!("{measure}: median, and lowest to highest run; each group has its own scale"),
        series: series.iter().map(|name| (*name).to_owned()).collect(),
        groups: cases.into_iter().map(group).collect(),
    };
    let slug =
        |text: &str| text.to_lowercase().replace(|it: char| !it.is_ascii_alphanumeric(), "-");
    let prefix = if prefix.is_empty() { String::new() } else { format!("-{}", slug(prefix)) };
    (format!("{}{prefix}.svg", results.benchmark), chart)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULTS: &str = r#"{"benchmark": "x", "command": "just benchmark x", "date": "2026-11-25",
        "machine": "a CPU", "versions": "Aeron 1.54.0", "rows": [
        {"case": "a, 1", "contender": "Rust", "measures": {"msgs/s": [2.0, 4.0]}},
        {"case": "a, 1", "contender": "C", "measures": {"msgs/s": {"median": 1.0}}}]}"#;

    fn rendered(page: &str) -> Result<Vec<Rendered>, Failure> {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir(dir.path().join("results")).expect("a folder");
        fs::write(dir.path().join("results/x.json"), RESULTS).expect("a file");
        let path = dir.path().join("page.md");
        fs::write(&path, page).expect("a file");
        render(&path, dir.path())
    }

    #[test]
    fn blocks_are_replaced_and_the_rest_stays() {
        let page = |table: &str, origin: &str| {
            format!(
                "before\n<!-- results: x | contenders | msgs/s | a -->\n{table}<!-- end -->\nbetween\n\
                 <!-- results: x | origin -->\n{origin}<!-- end -->\nafter\n"
            )
        };
        let files = rendered(&page("old\n", "old\n")).expect("a page");
        let table = "\n| msgs/s | Rust | C | Rust / C |\n|---|---|---|---|\n\
                     | 1 | 2.00, **3.00**, 4.00 | 1.00 | 3.00 |\n\n";
        let origin = "`just benchmark x`, 2026-11-25. a CPU. Aeron 1.54.0.\n";
        assert_eq!(files.len(), 1);
        assert_eq!(files[0].text, page(table, origin));
        assert_eq!(rendered(&files[0].text).expect("a page")[0].text, files[0].text);
    }

    #[test]
    fn goals_follow_their_contenders() {
        let files =
            rendered("<!-- results: x | goals | msgs/s | C | Rust | a, 4 -->\n<!-- end -->\n");
        let page = &files.expect("a page")[0].text;
        assert!(page.contains("| a | Rust | 4 | 1 | 3.00 | not met |"), "{page}");
    }

    #[test]
    fn chart_is_a_file_of_its_own() {
        let files =
            rendered("<!-- results: x | chart | msgs/s | a, | The title -->\n<!-- end -->\n");
        let files = files.expect("a page");
        assert!(files[0].path.ends_with("charts/x-a-.svg"), "{files:?}");
        assert!(files[0].text.contains("The title") && files[0].text.contains("a CPU; 2026-11-25"));
        assert!(files[1].text.contains("![The title](charts/x-a-.svg)"), "{files:?}");
    }

    #[test]
    fn faulty_blocks_are_refused() {
        for (page, reason) in [
            ("<!-- results: x | contenders | msgs/s -->\n", "no end"),
            ("<!-- results: y | origin -->\n<!-- end -->", "y.json"),
            ("<!-- results: x | goals | msgs/s | C | Rust | a -->\n<!-- end -->", "ratio: \"a\""),
            ("<!-- results: x | goals | msgs/s | Go | Rust | a, 4 -->\n<!-- end -->", "no row"),
            ("<!-- results: x | pie -->\n<!-- end -->", "pie"),
            ("<!-- results: x | contenders | p50 µs -->\n<!-- end -->", "no row"),
            ("<!-- results: x | measures | msgs/s | b -->\n<!-- end -->", "no row"),
        ] {
            let failure = rendered(page).expect_err(page).to_string();
            assert!(failure.contains(reason), "{failure}");
        }
    }
}
