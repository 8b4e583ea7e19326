//! Files of the repository that come from the tables of settings. `UPDATE_FILES=1 cargo test -p rusteron-codegen`
//! writes them.

use std::path::{Path, PathBuf};
use std::{env, fs};

use rusteron_codegen::{Table, markdown, python_stub};

const STUB_HEAD: &str = r#"# Written by `UPDATE_FILES=1 cargo test -p rusteron-codegen` from the tables of settings (`settings.txt`).
from datetime import timedelta
from typing import Literal, TypedDict, Union

Seconds = Union[float, timedelta]
IdleStrategy = Literal["spin", "yield", "sleep-ns", "backoff", "noop"]
ThreadingMode = Literal["dedicated", "shared-network", "shared"]
InferableBoolean = Union[bool, Literal["infer"]]
"#;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn table(name: &str) -> Table {
    let path = root().join(name).join("settings.txt");
    Table::parse(&read(&path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Compares a file with its generated text, or writes the file.
fn assert_is(path: &Path, expected: &str) {
    if env::var_os("UPDATE_FILES").is_some() {
        fs::write(path, expected).expect("a file that can be written");
    }
    let is_same = read(path) == expected;
    assert!(is_same, "{} is not what its tables say: UPDATE_FILES=1 writes it", path.display());
}

#[test]
fn python_stubs() {
    let mut stub = STUB_HEAD.to_owned();
    for (name, class) in [
        ("rusteron-media-driver", "DriverSettings"),
        ("rusteron-client", "ClientSettings"),
        ("rusteron-archive", "ArchiveSettings"),
    ] {
        stub = stub + "\n" + &python_stub(&table(name), class);
    }
    assert_is(&root().join("rusteron-python/python/rusteron/_settings.pyi"), &stub);
}

#[test]
fn page_of_settings() {
    let path = root().join("docs/operating/settings.md");
    let mut page = read(&path);
    for (name, title) in [
        ("rusteron-media-driver", "the media driver"),
        ("rusteron-client", "the client"),
        ("rusteron-archive", "the archive client"),
    ] {
        let begin = format!("<!-- generated: settings of {title} -->\n");
        let (before, rest) = page.split_once(&begin).expect("the mark before the table");
        let (_, after) = rest.split_once("<!-- end -->").expect("the mark behind the table");
        let text = markdown(&table(name));
        page = format!("{before}{begin}{}\n<!-- end -->{after}", text.trim_end());
    }
    assert_is(&path, &page);
}
