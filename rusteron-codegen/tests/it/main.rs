//! Tables of settings, the mistakes that they can have, and the files of the repository that come from them.
//! `UPDATE_FILES=1 cargo test -p rusteron-codegen` writes these files.

use std::path::{Path, PathBuf};
use std::{env, fs};

use rusteron_codegen::{Table, markdown, python_stub};

const STUB_HEAD: &str = r#"# Written by `UPDATE_FILES=1 cargo test -p rusteron-codegen` from the tables of settings (`settings.txt`).
from datetime import timedelta
from os import PathLike
from typing import Literal, TypedDict, Union

Dir = Union[str, PathLike[str]]
Seconds = Union[float, timedelta]
IdleStrategy = Literal["spin", "yield", "sleep-ns", "backoff", "noop"]
ThreadingMode = Literal["dedicated", "shared-network", "shared"]
InferableBoolean = Union[bool, Literal["infer"]]
ArchiveThreadingMode = Literal["dedicated", "shared"]
Checksum = Literal["crc-32", "crc-32c"]
"#;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn table(name: &str) -> Table {
    table_in(name, "settings.txt", Table::parse)
}

fn table_in(name: &str, file: &str, parse: fn(&str) -> Result<Table, String>) -> Table {
    let path = root().join(name).join(file);
    parse(&read(&path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
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
    let server = table_in("rusteron-archive-server", "settings.txt", Table::parse_plain);
    for (table, class) in [
        (table("rusteron-media-driver"), "DriverSettings"),
        (table("rusteron-client"), "ClientSettings"),
        (table("rusteron-archive"), "ArchiveSettings"),
        (server, "ArchiveServerSettings"),
    ] {
        stub = stub + "\n" + &python_stub(&table, class);
    }
    assert_is(&root().join("rusteron-python/python/rusteron/_settings.pyi"), &stub);
}

#[test]
fn page_of_settings() {
    let path = root().join("docs/operating/settings.md");
    let mut page = read(&path);
    let server = table_in("rusteron-archive-server", "settings.txt", Table::parse_plain);
    for (table, title, prefix) in [
        (table("rusteron-media-driver"), "the media driver", "AERON_"),
        (table("rusteron-client"), "the client", "AERON_CLIENT_"),
        (table("rusteron-archive"), "the archive client", "AERON_ARCHIVE_"),
        (server, "the archive server", "AERON_ARCHIVE_"),
    ] {
        let begin = format!("<!-- generated: settings of {title} -->\n");
        let (before, rest) = page.split_once(&begin).expect("the mark before the list");
        let (_, after) = rest.split_once("<!-- end -->").expect("the mark behind the list");
        let text = markdown(&table, prefix);
        page = format!("{before}{begin}{}\n<!-- end -->{after}", text.trim_end());
    }
    assert_is(&path, &page);
}

const TABLE: &str = "
# A comment.

## Limits

mtu_length TINY_MTU
  size, default 4k, must be multiple of 32 64..65504
  The [longest](Self::other) frame
  of a | b.

  Details.

  ```
  example
  ```

timeout_ns -
  optional duration, values 1us..
  How long to wait.

mode TINY_MODE
  enum Mode, words ON OFF, not in Python
  The mode.

dir -
  path
  A directory.
- TINY_VERBATIM
  unread text
  A variable.
- TINY_OTHER
  text
  A variable.
- TINY_LAST
  text
  A variable.
";

#[test]
fn list_for_readers() {
    let table = Table::parse(TABLE).expect("a table");
    let expected = "
### Limits

- `TINY_MTU=4k` (`mtu_length`): The longest frame of a | b. Must be a multiple of 32 from 64 to 65504.
- `timeout`: How long to wait.
- `TINY_MODE`: The mode. One of `ON`, `OFF`.
- `dir`: A directory.
- `TINY_OTHER`†, `TINY_LAST`†: A variable.
";
    assert_eq!(markdown(&table, "TINY_"), expected);
    assert_eq!(table.defaults().collect::<Vec<_>>(), [("TINY_MTU", "4k")]);
}

#[test]
fn stub_has_what_python_offers() {
    let table = Table::parse(TABLE).expect("a table");
    let expected = "class Tiny(TypedDict, total=False):\n    mtu_length: int\n    timeout: Seconds | None\n    dir: Dir\n";
    assert_eq!(python_stub(&table, "Tiny"), expected);
    let table =
        Table::parse_plain("sum -\n  optional enum Sum, read sum\n  Text.").expect("a table");
    assert!(python_stub(&table, "Tiny").ends_with("\n    sum: Sum | None\n"));
}

#[test]
fn mistakes_are_reported_at_once() {
    for (text, problem) in [
        ("name\n  flag\n  Text.", "\"name\" is not a name and a variable"),
        ("name -\n", "name -: no type"),
        ("name -\n  flag", "name -: no description"),
        ("name -\n  flag, defaults 1\n  Text.", "there is no attribute \"defaults 1\""),
        ("name -\n  text\n  Text.", "name -: \"text\" must be"),
        ("name -\n  text retaind\n  Text.", "name -: \"text retaind\" must be"),
        ("- NAME\n  text retained\n  Text.", "\"text retained\" must be `text`"),
        ("name -\n  size, values 1\n  Text.", "\"1\" is no range"),
        ("name -\n  ports\n  Text.", "name -: the methods of such a type are by hand"),
        ("name -\n  flag\n  Text.\nname -\n  flag\n  Text.", "name stands twice"),
    ] {
        let error = Table::parse(text).expect_err(problem);
        assert!(error.contains(problem), "{error}");
    }
    let absent = Table::parse("name -\n  optional flag\n  Text.").expect_err("an absent flag");
    assert!(absent.contains("only a duration can be absent in C"), "{absent}");
    Table::parse_plain("name -\n  optional number i32\n  Text.").expect("plain");
    for row in ["wait -\n  duration", "idle -\n  idle arguments", "label -\n  optional text"] {
        Table::parse_plain(&format!("{row}\n  Text.")).expect_err(row);
    }
    let error = Table::parse("a -\n\n\nb -\n  nothing, x").expect_err("two mistakes");
    assert_eq!(error.lines().count(), 2, "{error}");
    assert!(error.contains("line 4: "), "{error}");
}
