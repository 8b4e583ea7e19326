//! Setters and getters: each mapping, the docs, and each mistake that a spec can make.

use rusteron_codegen::{ContextSpec, Setting, Source};

use crate::common::{BINDINGS, HEADER, Method, context, generate, generator_of, mode, problems};

/// Signatures of setter and getter, with blanks left out.
fn assert_pair(text: &str, name: &str, value: &str, output: &str) {
    let name = name.to_owned();
    let setter = Method::find(text, &format!("set_{}", name.trim_end_matches('_')));
    assert_eq!(
        setter.signature().replace(",)", ")"),
        format!(
            "fnset_{}(&mutself,value:{value})->crate::ffi::Result<&mutSelf>",
            name.trim_end_matches('_')
        )
    );
    let getter = Method::find(text, &name);
    assert_eq!(getter.signature(), format!("fn{name}(&self)->{output}"));
}

#[test]
fn every_type_has_its_signatures() {
    let text = generate(context()).unwrap();
    let duration = "::std::time::Duration";
    assert_pair(
        &text,
        "dir",
        "impl::core::convert::AsRef<::std::path::Path>",
        "&::std::path::Path",
    );
    assert_pair(&text, "label", "&str", "::std::borrow::Cow<'_,str>");
    assert_pair(&text, "timeout", duration, duration);
    assert_pair(&text, "patience", duration, duration);
    assert_pair(&text, "threshold", duration, duration);
    assert_pair(&text, "buffer_length", "usize", "usize");
    assert_pair(&text, "ratio", "i32", "i32");
    assert_pair(&text, "enabled", "bool", "bool");
    assert_pair(&text, "mode", "Mode", "Mode");
    assert_pair(&text, "type_", "u8", "u8");
}

#[test]
fn values_are_converted_on_the_way() {
    let text = generate(context()).unwrap();
    let body = |name| Method::find(&text, name).body();
    assert!(body("set_dir").contains(r#"letvalue=crate::ffi::c_path("dir",value.as_ref())?;"#));
    assert!(body("set_label").contains(r#"letvalue=crate::ffi::c_string("label",value)?;"#));
    assert!(body("label").contains("crate::ffi::lossy(value)"));
    assert!(body("set_timeout").contains(r#"crate::ffi::nanos("timeout_ns",value)?"#));
    assert!(body("timeout").contains("Duration::from_nanos(value)"));
    assert!(body("set_patience").contains(r#"crate::ffi::millis("patience_ms",value)?"#));
    assert!(body("patience").contains("Duration::from_millis(value)"));
    assert!(
        body("set_mode").contains("sys::tiny::tiny_context_set_mode(self.as_ptr(),value.to_raw())")
    );
    assert!(body("mode").contains("Mode::from_raw(value).unwrap_or(Mode::One)"));
    assert!(body("set_ratio").contains("crate::ffi::Fallible::into_result(code)?;Ok(self)"));
    // A code of 64 bits becomes C's int, and a truth value that C returns as int a bool.
    assert!(
        body("set_threshold").contains("asc_int".replace("c_int", "::core::ffi::c_int").as_str())
    );
    assert!(body("threshold").contains("asu64;"));
    assert!(body("enabled").contains("value!=0"));
}

#[test]
fn docs_stand_in_house_order() {
    let text = generate(context()).unwrap();
    assert_eq!(
        Method::find(&text, "set_timeout").docs(),
        [
            "Timeout.",
            "Resolution: nanoseconds.",
            "Environment: `TINY_TIMEOUT`.",
            "# Errors",
            "If `value` is too long for C's integer, or Aeron refuses it.",
            "Corresponds to `tiny_context_set_timeout_ns`.",
        ]
    );
    assert!(text.contains(r#"    #[doc(alias = "tiny_context_set_timeout_ns")]"#));
    assert_eq!(
        Method::find(&text, "dir").docs(),
        [
            "The directory \\[shared\\] by all.",
            "Empty when it is not set.",
            "Environment: `TINY_DIR`.",
            "Corresponds to `tiny_context_get_dir`.",
        ]
    );
    assert_eq!(Method::find(&text, "buffer_length").docs()[1], "Unit: bytes.");
    // The spec's description, the header's variable.
    let patience = Method::find(&text, "patience").docs();
    assert_eq!(patience[0], "How long to wait.");
    assert_eq!(patience[1], "Resolution: milliseconds; a fraction of one is rounded up.");
    assert!(patience.contains(&"Environment: `TINY_PATIENCE`.".to_owned()));
}

#[test]
fn the_spec_wins_over_the_header() {
    let setting = Setting::new("ratio").summary("Better.").note("More.").environment("E").bytes();
    let text = generate(context().setting(setting)).unwrap();
    let docs = Method::find(&text, "ratio").docs();
    assert_eq!(docs[..2], ["Better.", "More."]);
    assert!(docs.contains(&"Environment: `E`.".to_owned()));
}

#[test]
fn every_unsafe_block_has_its_comment_above() {
    let text = generate(context()).unwrap();
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let blocks: Vec<_> = (0..lines.len()).filter(|&at| lines[at].contains("unsafe {")).collect();
    // 20 functions, and one more block for each string that is read.
    assert_eq!(blocks.len(), 22);
    for at in blocks {
        let is_continued = lines[at - 1].ends_with('=');
        let mut above = if is_continued { at - 2 } else { at - 1 };
        assert!(lines[above].starts_with("// "), "{}", lines[at]);
        while !lines[above].starts_with("// SAFETY: ") {
            above -= 1;
            assert!(lines[above].starts_with("// "), "{}", lines[at]);
        }
    }
}

#[test]
fn debug_prints_readable() {
    let text = generate(context().debug()).unwrap();
    let method = Method::find(&text, "fmt");
    let body = method.body();
    for name in ["dir", "timeout", "enabled", "mode", "type_"] {
        assert!(body.contains(&format!(".field(\"{name}\",&self.{name}())")), "{name} in {body}");
    }
    assert_eq!(body.matches(".field(").count(), 10);
    assert!(Method::find_in(&generate(context()).unwrap(), "fmt").is_none());
}

#[test]
fn retained_strings_outlive_the_call() {
    let spec = ContextSpec::new("Context", "keep", "sys", "crate::ffi")
        .setting(Setting::new("name").retained());
    let bindings = "unsafe extern \"C\" { pub fn keep_set_name(context: *mut keep_t, \
                    value: *const c_char) -> c_int; }";
    let text = generator_of(bindings, "/** Name. */\nint keep_set_name(keep_t *c, const char *v);")
        .context(spec)
        .generate()
        .unwrap();
    let body = Method::find(&text, "set_name").body();
    assert!(body.contains("letvalue=self.retain(value);"), "{body}");
    assert!(body.contains("keep_set_name(self.as_ptr(),value)"), "{body}");
    // A setter without a getter stands alone.
    assert!(Method::find_in(&text, "name").is_none());
}

#[test]
fn choices_and_optional_durations() {
    let spec = context()
        .setting(Setting::new("threshold_ns").optional())
        .hand_written("tiny_context_set_label", "x")
        .hand_written("tiny_context_get_label", "x");
    // `label` is written by hand now, so its setting is one too many.
    assert_eq!(problems(spec), ["Context: there is no setting label to generate"]);

    let spec = ContextSpec::new("Context", "tiny_context", "sys::tiny", "crate::ffi")
        .setting(Setting::new("dir").path().copied())
        .setting(Setting::new("label").choice("crate::Label"))
        .setting(Setting::new("patience_ms").summary("Patience."))
        .setting(Setting::new("threshold_ns").optional())
        .hand_written("tiny_context_init", "")
        .hand_written("tiny_context_set_handler", "")
        .hand_written("tiny_context_get_handler", "");
    let text = generate(spec).unwrap();
    assert_pair(&text, "label", "crate::Label", "::core::option::Option<crate::Label>");
    let optional = "::core::option::Option<::std::time::Duration>";
    assert_pair(&text, "threshold", optional, optional);
    assert!(Method::find(&text, "set_threshold").body().contains("None=>u64::MAX"));
    assert!(Method::find(&text, "threshold").body().contains("(value!=u64::MAX).then("));
}

#[test]
fn names_that_would_collide_keep_their_units() {
    let bindings = BINDINGS.replace("patience_ms", "timeout_ms");
    let header = HEADER.replace("patience_ms", "timeout_ms");
    let spec = |spec: ContextSpec| {
        spec.setting(Setting::new("dir").path().copied())
            .setting(Setting::new("label").copied())
            .setting(Setting::new("timeout_ms").summary("Patience."))
            .hand_written("tiny_context_init", "")
            .hand_written("tiny_context_set_handler", "")
            .hand_written("tiny_context_get_handler", "")
    };
    let new = || ContextSpec::new("Context", "tiny_context", "sys::tiny", "crate::ffi");
    let generator = generator_of(&bindings, &header).enumeration(mode());
    let text = generator.context(spec(new())).generate().unwrap();
    let duration = "::std::time::Duration";
    assert_pair(&text, "timeout_ns", duration, duration);
    assert_pair(&text, "timeout_ms", duration, duration);
    assert!(Method::find_in(&text, "timeout").is_none());

    // `set_` as part of a getter's name cannot be resolved.
    let bindings = BINDINGS.replace("get_ratio", "get_set_type");
    let error = generator_of(&bindings, HEADER).enumeration(mode()).context(context()).generate();
    let error = error.unwrap_err().to_string();
    assert!(error.contains("would both be set_type"), "{error}");
}

#[test]
fn getter_with_other_name() {
    let bindings = BINDINGS.replace("get_ratio", "get_rate");
    let generate = |spec: ContextSpec| {
        generator_of(&bindings, HEADER).enumeration(mode()).context(spec).generate()
    };
    let error = generate(context()).unwrap_err();
    assert_eq!(error.problems(), ["Context: neither header nor spec describes rate"]);
    let text = generate(context().setting(Setting::new("ratio").getter("rate"))).unwrap();
    assert_pair(&text, "ratio", "i32", "i32");
    assert!(Method::find(&text, "ratio").body().contains("tiny_context_get_rate"));
    let renamed = Setting::new("ratio").getter("rate").rename("proportion");
    let text = generate(context().setting(renamed)).unwrap();
    assert_pair(&text, "proportion", "i32", "i32");
    assert!(Method::find(&text, "proportion").body().contains("tiny_context_get_rate"));
    let error = generate(context().setting(Setting::new("ratio").getter("rats"))).unwrap_err();
    assert!(error.to_string().contains("there is no tiny_context_get_rats"), "{error}");
}

#[test]
fn everything_missing_is_reported_at_once() {
    let spec = ContextSpec::new("Context", "tiny_context", "sys::tiny", "crate::ffi");
    let error = generator_of(BINDINGS, HEADER).context(spec).generate().unwrap_err();
    let text = error.to_string();
    for missing in [
        "tiny_context_init (it is neither setter nor getter)",
        "tiny_context_set_handler (its parameters are not those of a setter or getter)",
        "tiny_context_get_handler (a function pointer)",
        "tiny_context_set_mode (no EnumSpec for tiny_mode_enum)",
        "tiny_context_set_dir takes a string",
        "tiny_context_set_label takes a string",
        "neither header nor spec describes patience_ms",
    ] {
        assert_eq!(text.matches(missing).count(), 1, "{missing}\n{text}");
    }
    assert!(!text.contains("tiny_other"), "{text}");
}

#[test]
fn names_that_aeron_does_not_have_are_errors() {
    assert_eq!(
        problems(context().hand_written("tiny_context_set_gone", "x")),
        [
            "Context: tiny_context_set_gone is declared as hand_written, but the bindings do not have it"
        ]
    );
    assert_eq!(
        problems(context().setting(Setting::new("gone").summary("x"))),
        ["Context: there is no setting gone to generate"]
    );
    assert_eq!(
        problems(context().hand_written("tiny_context_init", "again")),
        ["Context: tiny_context_init is declared twice"]
    );
    assert_eq!(
        problems(context().setting(Setting::new("label"))),
        ["Context: setting label is described twice"]
    );
    let spec = ContextSpec::new("Context", "huge_context", "sys", "crate::ffi");
    assert_eq!(problems(spec), ["Context: the bindings have no huge_context_*"]);
}

#[test]
fn overrides_must_fit_the_type() {
    let not_a_string = problems(context().setting(Setting::new("ratio").path()));
    assert!(not_a_string[0].contains("tiny_context_set_ratio (it is not a string)"));
    let not_a_duration = problems(context().setting(Setting::new("ratio").optional()));
    assert!(not_a_duration[0].contains("tiny_context_get_ratio (it is not a duration)"));
}

#[test]
fn a_setting_of_two_types_is_an_error() {
    let bindings = BINDINGS.replace(
        "get_ratio(context: *mut tiny_context_t) -> i32",
        "get_ratio(context: *mut tiny_context_t) -> u16",
    );
    assert_ne!(bindings, BINDINGS);
    let generator = generator_of(&bindings, HEADER).enumeration(mode());
    let error = generator.context(context()).generate().unwrap_err();
    let expected = "Context: ratio is set as one type and read as another; write one by hand";
    assert_eq!(error.problems(), [expected]);
}

#[test]
fn signed_durations_are_converted_as_signed() {
    let bindings = BINDINGS
        .replace(
            "timeout_ns(context: *mut tiny_context_t, value: u64)",
            "timeout_ns(context: *mut tiny_context_t, value: i64)",
        )
        .replace(
            "timeout_ns(context: *mut tiny_context_t) -> u64",
            "timeout_ns(context: *mut tiny_context_t) -> i64",
        );
    assert_ne!(bindings, BINDINGS);
    let generator = generator_of(&bindings, HEADER).enumeration(mode());
    let text = generator.context(context()).generate().unwrap();
    assert_pair(&text, "timeout", "::std::time::Duration", "::std::time::Duration");
    assert!(Method::find(&text, "set_timeout").body().contains("nanos_i64("));

    let generator = generator_of(&bindings, HEADER).enumeration(mode());
    let spec = context().setting(Setting::new("timeout_ns").optional());
    let error = generator.context(spec).generate().unwrap_err();
    assert!(error.to_string().contains("tiny_context_set_timeout_ns is signed"), "{error}");
}

#[test]
fn a_path_that_is_not_rust_is_an_error() {
    let spec = ContextSpec::new("Con text", "keep", "sys", "crate::ffi");
    let bindings = "unsafe extern \"C\" { pub fn keep_get_a(context: *mut keep_t) -> u8; }";
    let header = "/** A. */\nuint8_t keep_get_a(keep_t *c);";
    let error = generator_of(bindings, header).context(spec).generate().unwrap_err();
    assert!(error.problems()[0].contains("the generated text is not Rust"), "{error}");
}

#[test]
fn round_trips() {
    let bindings =
        BINDINGS.replace("pub fn tiny_context_get_ratio(context: *mut tiny_context_t) -> i32;", "");
    let generator = generator_of(&bindings, HEADER);
    let text = generator
        .enumeration(mode())
        .context(context().setting(Setting::new("type").rename("sort")))
        .generate_round_trips()
        .unwrap();
    syn::parse_str::<syn::ExprBlock>(&text).expect("an expression");
    for call in [
        "round_trip!(set_dir, dir, path);",
        "round_trip!(set_label, label, text);",
        "round_trip!(set_timeout, timeout, value);",
        "round_trip!(set_enabled, enabled, value);",
        "round_trip!(set_mode, mode, value);",
        "round_trip!(set_sort, sort, value);",
    ] {
        assert_eq!(text.matches(call).count(), 1, "{call} in {text}");
    }
    assert!(!text.contains("ratio") && !text.contains("handler"), "{text}");
}

#[test]
fn documented_defaults_and_limits() {
    let source = |default: &str, least: &str, most: &str| {
        format!(
            "#define TINY_TIMEOUT_ENV_VAR \"TINY_TIMEOUT\"\n#define TINY_TIMEOUT_NS_DEFAULT {default}\n\
             x = aeron_config_parse_duration_ns(TINY_TIMEOUT_ENV_VAR, getenv(\"\"), x, {least}, {most});"
        )
    };
    let docs = |default: &str, least: &str, most: &str| {
        let text = generator_of(BINDINGS, HEADER)
            .defaults(&[Source::new("tiny.c", source(default, least, most))])
            .enumeration(mode())
            .context(context())
            .generate()
            .unwrap();
        Method::find(&text, "set_timeout").docs().join("\n")
    };
    for (default, least, most, default_line, environment_line) in [
        (
            "(2 * 1000)",
            "1000",
            "INT64_MAX",
            "Default: 2 µs.",
            "`TINY_TIMEOUT`, cut to at least 1 µs.",
        ),
        (
            "INT64_C(1500000)",
            "0",
            "3000000",
            "Default: 1500 µs.",
            "`TINY_TIMEOUT`, cut to at most 3 ms.",
        ),
        ("7", "1", "2", "Default: 7 ns.", "`TINY_TIMEOUT`, cut to 1 ns to 2 ns."),
        ("0", "0", "INT64_MAX", "Default: 0.", "Environment: `TINY_TIMEOUT`."),
    ] {
        let docs = docs(default, least, most);
        assert!(docs.contains(default_line), "{default_line} in {docs}");
        assert!(docs.contains(environment_line), "{environment_line} in {docs}");
    }
    assert!(!docs("tiny_unknown()", "0", "1").contains("Default"));
}
