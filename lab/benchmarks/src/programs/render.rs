//! Pages whose tables come from results files.
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
//! - `origin`: command, date, machine and versions.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use rusteron_core::program::Failure;

use crate::reports::results::Results;
use crate::reports::table;

/// Renders the tables of pages from the files in docs/benchmarks/results.
///
/// The pages are BENCHMARKS.md and those of docs/benchmarks that have blocks of results.
#[derive(Debug, Clone, Args)]
pub struct RenderOptions {
    /// Write nothing, and fail if a page differs from its results
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
        let failed = |error| Failure::run(path.display(), error);
        let text = fs::read_to_string(&path).map_err(failed)?;
        let rendered =
            render(&text, &docs).map_err(|failure| Failure::run(path.display(), failure))?;
        if rendered == text {
            continue;
        }
        if !options.check {
            fs::write(&path, rendered).map_err(failed)?;
        }
        different.push(path.display().to_string());
    }
    if options.check && !different.is_empty() {
        let files = different.join(", ");
        return Err(Failure::run("`just benchmark render` would change", files));
    }
    Ok(())
}

const BEGIN: &str = "<!-- results:";
const END: &str = "<!-- end -->";

/// Renders the text of a page. `docs` is the folder with `results/`.
fn render(text: &str, docs: &Path) -> Result<String, Failure> {
    let mut rendered = String::new();
    let mut rest = text;
    while let Some((before, block)) = rest.split_once(BEGIN) {
        let parts = block
            .split_once("-->\n")
            .and_then(|(fields, block)| Some((fields, block.split_once(END)?.1)));
        let Some((fields, after)) = parts else {
            return Err(Failure::Run("a block of results has no end".to_owned()));
        };
        let body = render_block(fields, docs).map_err(|failure| Failure::run(fields, failure))?;
        rendered += &format!("{before}{BEGIN}{fields}-->\n{body}{END}");
        rest = after;
    }
    Ok(rendered + rest)
}

fn render_block(fields: &str, docs: &Path) -> Result<String, Failure> {
    let fields: Vec<&str> = fields.split('|').map(str::trim).collect();
    let field = |index: usize| fields.get(index).copied().unwrap_or_default();
    let results = Results::read(&docs.join("results").join(field(0)).with_extension("json"))?;
    let (measure, prefix) = (field(2), field(3));
    let table = match field(1) {
        "origin" => return Ok(origin(&results)),
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

#[cfg(test)]
mod tests {
    use super::*;

    const RESULTS: &str = r#"{"benchmark": "x", "command": "just benchmark x", "date": "2026-11-25",
        "machine": "a CPU", "versions": "Aeron 1.54.0", "rows": [
        {"case": "a, 1", "contender": "Rust", "measures": {"msgs/s": [2.0, 4.0]}},
        {"case": "a, 1", "contender": "C", "measures": {"msgs/s": {"median": 1.0}}}]}"#;

    fn rendered(page: &str) -> Result<String, Failure> {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir(dir.path().join("results")).expect("a folder");
        fs::write(dir.path().join("results/x.json"), RESULTS).expect("a file");
        render(page, dir.path())
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
