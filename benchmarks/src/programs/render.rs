//! Pages, rendered from results files.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::command_line::failure::Failure;
use crate::reports::pages;

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
        options.root.clone().unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
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
        for file in pages::render(&path, &docs)? {
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
