//! Headers in which the coverage check finds a fault, and headers that it accepts.

use std::fs;

use rusteron_codegen::{Generated, Omissions, Sources, coverage_problems};

const ALL: Generated =
    Generated { declared: &["tiny_a", "tiny_b", "tiny_c"], wrapped: &["tiny_c"] };

/// A crate whose code has `tiny_a`, and whose documentation has `tiny_b`.
fn sources() -> Sources {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("inner")).unwrap();
    let text = r#"
        // tiny_comment() is not called.
        /// Unlike `tiny_mentioned`.
        ///
        /// Corresponds to `tiny_aa` and
        /// `tiny_b`.
        fn f() { sys::tiny_a("tiny_literal: Corresponds to tiny_literal"); }
        /// `tiny_mentioned`
        #[cfg(test)]
        mod tests {
            /// Corresponds to `tiny_tested`.
            fn f() { sys::tiny_tested(); }
        }
        #[cfg(unix)]
        fn g() { sys::tiny_unix(); }
    "#;
    fs::write(dir.path().join("inner/mod.rs"), text).unwrap();
    let shim = "#include \"tiny_b.h\"\n/* not tiny_comment */\nint f(int x) { return tiny_shim() / x; } // tiny_comment";
    fs::write(dir.path().join("shim.c"), shim).unwrap();
    Sources::new()
        .rust_dir(dir.path())
        .and_then(|sources| sources.c_file(dir.path().join("shim.c")))
        .unwrap()
}

fn problems(omissions: Omissions<'_>) -> Vec<String> {
    coverage_problems(ALL, &sources(), omissions)
}

#[test]
fn used_and_documented_is_complete() {
    assert_eq!(problems(&[]), [""; 0]);
}

#[test]
fn omission_that_is_documented_is_fine() {
    assert_eq!(problems(&[("no use", &["tiny_b"])]), [""; 0]);
}

#[test]
fn comments_do_not_count() {
    let all = Generated { declared: &["tiny_comment", "tiny_shim"], wrapped: &[] };
    let problem = "tiny_comment is neither used, nor documented as replaced, nor omitted";
    assert_eq!(coverage_problems(all, &sources(), &[]), [problem]);
    assert_eq!(coverage_problems(all, &sources(), &[("no use", &["tiny_comment"])]), [""; 0]);
}

#[test]
fn only_code_and_correspondence_count() {
    let declared = &["tiny_aa", "tiny_literal", "tiny_mentioned", "tiny_tested", "tiny_unix"];
    let found = coverage_problems(Generated { declared, wrapped: &[] }, &sources(), &[]);
    let expected = ["tiny_literal", "tiny_mentioned", "tiny_tested"];
    let problem = "is neither used, nor documented as replaced, nor omitted";
    assert_eq!(found, expected.map(|name| format!("{name} {problem}")));
}

#[test]
fn omission_that_the_header_lost_is_found() {
    let found = problems(&[("no use", &["tiny_old"])]);
    assert_eq!(found, ["tiny_old is omitted, but not in the header"]);
}

#[test]
fn omission_that_is_used_is_found() {
    let found = problems(&[("no use", &["tiny_a"]), ("no use either", &["tiny_c"])]);
    assert_eq!(found, ["tiny_a is omitted, but used", "tiny_c is omitted, but used"]);
}

#[test]
fn omission_that_only_the_shim_uses_is_found() {
    let all = Generated { declared: &["tiny_shim"], wrapped: &[] };
    let found = coverage_problems(all, &sources(), &[("no use", &["tiny_shim"])]);
    assert_eq!(found, ["tiny_shim is omitted, but used"]);
}

#[test]
fn second_omission_is_found() {
    let found = problems(&[("no use", &["tiny_b"]), ("no use either", &["tiny_b"])]);
    assert_eq!(found, ["tiny_b is omitted twice"]);
}
