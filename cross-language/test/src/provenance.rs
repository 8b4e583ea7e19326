//! The origin of measured rows.

use serde_json::Value;

/// The fields that all rows of a table share.
const SHARED: [&str; 3] = ["commit", "quick", "versions"];

/// Checks that rows can stand in one table: of one commit, with equal versions, all measured at full length or none. Only quick rows
/// may be of a tree with changes.
///
/// # Errors
/// A row differs from the first, or has no such field. The text says how.
pub fn check(rows: &[Value]) -> Result<(), String> {
    let Some(first) = rows.first() else { return Ok(()) };
    for row in rows {
        for field in SHARED {
            if row[field].is_null() {
                return Err(format!("a row without {field}: {row}"));
            }
            if field == "commit"
                && row["quick"] != true
                && row[field].as_str().is_some_and(is_dirty)
            {
                return Err(format!("a row of uncommitted programs: {}", row[field]));
            }
            if row[field] != first[field] {
                let (one, other) = (&first[field], &row[field]);
                return Err(format!(
                    "rows of {field} {one} and {other}: measure into another directory"
                ));
            }
        }
    }
    Ok(())
}

/// Two trees with changes can have the same name.
fn is_dirty(commit: &str) -> bool {
    commit.ends_with("-dirty")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(commit: &str, is_quick: bool, java: &str) -> Value {
        json!({ "commit": commit, "quick": is_quick, "versions": { "java": java } })
    }

    #[test]
    fn rows_of_one_origin_are_accepted() {
        assert_eq!(check(&[]), Ok(()));
        assert_eq!(check(&[row("a", false, "17"), row("a", false, "17")]), Ok(()));
    }

    #[test]
    fn rows_of_other_origins_are_refused() {
        for other in [row("b", false, "17"), row("a", true, "17"), row("a", false, "21")] {
            assert!(check(&[row("a", false, "17"), other.clone()]).is_err(), "{other}");
        }
        assert!(check(&[json!({ "quick": false })]).is_err());
        assert!(check(&[row("a-dirty", false, "17")]).is_err());
        assert_eq!(check(&[row("a-dirty", true, "17")]), Ok(()));
    }
}
