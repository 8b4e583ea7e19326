//! Headers in which the coverage check finds a fault, and headers that it accepts.

use std::fs;

use rusteron_codegen::{Generated, Omissions, Sources, coverage_problems};

use crate::common::{BINDINGS, context, generator_of, mode};

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

#[test]
fn generator_lists_declared_and_wrapped() {
    let header = "#define X(a) f(a)\nint tiny_context_init(tiny_context_t **context);\n\
                  typedef int (*tiny_handler_t)(void *clientd);\n\
                  int tiny_context_set_dir(tiny_context_t *context, const char *value);\n\
                  inline int tiny_inline(void) { return tiny_other(0); }\n";
    let generator = generator_of(BINDINGS, &(crate::common::HEADER.to_owned() + header));
    let text = generator.enumeration(mode()).context(context()).generate_coverage().unwrap();
    syn::parse_str::<syn::ExprStruct>(&text).expect("an expression");
    let (declared, wrapped) = text.split_once("wrapped").unwrap();
    for name in ["tiny_context_init", "tiny_context_set_dir", "tiny_inline"] {
        assert_eq!(declared.matches(&format!("{name:?}")).count(), 1, "{name} in {declared}");
    }
    for name in ["X", "f", "tiny_handler_t", "tiny_other"] {
        assert!(!declared.contains(&format!("{name:?}")), "{name} in {declared}");
    }
    // All functions of the family but the three that are written by hand.
    assert_eq!(wrapped.matches("\"tiny_context_").count(), 20);
    assert!(!wrapped.contains("tiny_context_init"));
}
