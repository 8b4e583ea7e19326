//! Tables: each mistake that a table can have.

use rusteron_codegen::{Table, markdown, python_stub};

const TABLE: &str = "
# A comment.

## Limits

mtu_length TINY_MTU
  size, default 4k, values multiple of 32 64..65504, checked
  The [longest](Self::other) frame
  of a | b.

  ```
  example
  ```

timeout_ns -
  optional duration, values 1us..
  How long to wait.

mode TINY_MODE
  enum Mode, words ON OFF, not in Python
  The mode.
- TINY_VERBATIM
  text, unread
  A variable.
";

#[test]
fn table_for_readers() {
    let table = Table::parse(TABLE).expect("a table");
    let expected = "
### Limits

| Setting | Variable | Default | Meaning |
|---|---|---|---|
| `mtu_length` | `TINY_MTU` | `4k` | The longest frame of a \\| b. Must be a multiple of 32 from 64 to 65504. |
| `timeout` |  |  | How long to wait. Values: from 1us. |
| `mode` | `TINY_MODE` |  | The mode. One of `ON`, `OFF`. |
|  | `TINY_VERBATIM` |  | A variable. |
";
    assert_eq!(markdown(&table), expected);
    assert_eq!(table.defaults().collect::<Vec<_>>(), [("TINY_MTU", "4k")]);
}

#[test]
fn stub_has_what_python_offers() {
    let table = Table::parse(TABLE).expect("a table");
    let expected =
        "class Tiny(TypedDict, total=False):\n    mtu_length: int\n    timeout: Seconds | None\n";
    assert_eq!(python_stub(&table, "Tiny"), expected);
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
        ("name -\n  flag\n  Text.\nname -\n  flag\n  Text.", "name stands twice"),
    ] {
        let error = Table::parse(text).expect_err(problem);
        assert!(error.contains(problem), "{error}");
    }
    let error = Table::parse("a -\n\n\nb -\n  nothing, x").expect_err("two mistakes");
    assert_eq!(error.lines().count(), 2, "{error}");
    assert!(error.contains("line 4: "), "{error}");
}
