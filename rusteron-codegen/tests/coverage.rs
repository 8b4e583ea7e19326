//! Headers in which the coverage check finds a fault, and headers that it accepts.

#![allow(missing_docs)]

mod common;

use std::fs;

use common::{BINDINGS, context, generator_of, mode};
use rusteron_codegen::{Generated, Row, Sources, coverage, coverage_problems};

const ALL: Generated =
    Generated { declared: &["tiny_a", "tiny_b", "tiny_c"], wrapped: &["tiny_c"] };

struct Context;

impl Context {
    fn init() -> Self {
        Self
    }

    fn poll(&self, mut handler: impl FnMut(&str)) {
        handler("message");
    }
}

impl Drop for Context {
    fn drop(&mut self) {}
}

/// A crate whose code has `tiny_a`, and whose documentation has `tiny_b`.
fn sources() -> Sources {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("inner")).unwrap();
    let text =
        "// tiny_comment() is not called.\n/// Corresponds to `tiny_b`.\nfn f() { sys::tiny_a(); }";
    fs::write(dir.path().join("inner/mod.rs"), text).unwrap();
    let shim = "#include \"tiny_b.h\"\n/* not tiny_comment */\nint f(int x) { return tiny_shim() / x; } // tiny_comment";
    fs::write(dir.path().join("shim.c"), shim).unwrap();
    Sources::new()
        .rust_dir(dir.path())
        .and_then(|sources| sources.c_file(dir.path().join("shim.c")))
        .unwrap()
}

fn problems(table: &[Row]) -> Vec<String> {
    coverage_problems(ALL, table, &sources(), 1)
}

#[test]
fn a_complete_table_has_no_problems() {
    let table = coverage! {
        calls tiny_a => Context::init, drop::<Context>;
        replaces tiny_b => Context::poll as fn(_, fn(&str));
    };
    assert_eq!(problems(&table), [""; 0]);
    assert_eq!(problems(&coverage! { omits tiny_a, tiny_b: "no use"; }), [""; 0]);
    Context::init().poll(|message| assert_eq!(message, "message"));
}

#[test]
fn a_function_that_is_missing_is_found() {
    let table = coverage! { calls tiny_a => Context::init; };
    assert_eq!(problems(&table), ["tiny_b is neither reached nor has a reason"]);
}

#[test]
fn a_function_that_the_header_does_not_have_is_found() {
    let table = coverage! { omits tiny_a, tiny_b, tiny_old: "no use"; };
    assert_eq!(problems(&table), ["tiny_old is in the table, but not in the header"]);
}

#[test]
fn a_function_that_is_covered_twice_is_found() {
    let table =
        coverage! { calls tiny_a => Context::init; omits tiny_a, tiny_b, tiny_c: "no use"; };
    assert_eq!(problems(&table), ["tiny_a is covered twice", "tiny_c is covered twice"]);
}

#[test]
fn a_call_that_no_code_makes_is_found() {
    let table = coverage! { calls tiny_a, tiny_b => Context::init; };
    assert_eq!(problems(&table), ["tiny_b is said to be called, but no code has it"]);
}

#[test]
fn a_replacement_that_code_calls_is_found() {
    let table = coverage! { replaces tiny_a, tiny_b => Context::init; };
    assert_eq!(problems(&table), ["tiny_a is said to be replaced, but code has it"]);
}

#[test]
fn a_replacement_that_is_not_documented_is_found() {
    let all = Generated { declared: &["tiny_comment", "tiny_shim"], wrapped: &[] };
    let table =
        coverage! { replaces tiny_comment => Context::init; calls tiny_shim => Context::init; };
    let found = coverage_problems(all, &table, &sources(), 0);
    assert_eq!(found, ["tiny_comment is replaced, but no documentation says so"]);
}

#[test]
fn too_many_reasons_are_found() {
    let table = coverage! { omits tiny_a: "one"; omits tiny_b: "another"; };
    assert_eq!(problems(&table), ["2 reasons are more than 1"]);
}

#[test]
fn the_generator_lists_what_is_declared_and_what_it_wraps() {
    let header = "#define X(a) f(a)\nint tiny_context_init(tiny_context_t **context);\n\
                  typedef int (*tiny_handler_t)(void *clientd);\n\
                  int tiny_context_set_dir(tiny_context_t *context, const char *value);\n\
                  inline int tiny_inline(void) { return tiny_other(0); }\n";
    let generator = generator_of(BINDINGS, &(common::HEADER.to_owned() + header));
    let text = generator.enumeration(mode()).context(context()).generate_coverage().unwrap();
    syn::parse_str::<syn::ExprBlock>(&text).expect("an expression");
    let (declared, wrapped) = text.split_once("wrapped").unwrap();
    for name in ["tiny_context_init", "tiny_context_set_dir", "tiny_inline"] {
        assert_eq!(declared.matches(&format!("{name:?}")).count(), 1, "{name} in {declared}");
    }
    for name in ["X", "f", "tiny_handler_t", "tiny_other"] {
        assert!(!declared.contains(&format!("{name:?}")), "{name} in {declared}");
    }
    assert!(declared.contains("let _ = Context::set_timeout;"), "{declared}");
    assert!(
        declared.contains("let _ = Context::set_dir as fn(_, &'static str) -> _;"),
        "{declared}"
    );
    // All functions of the family but the three that are written by hand.
    assert_eq!(wrapped.matches("\"tiny_context_").count(), 20);
    assert!(!wrapped.contains("tiny_context_init"));
}
