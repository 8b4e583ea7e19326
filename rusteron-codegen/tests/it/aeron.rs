//! The generator over the real bindings of rusteron-sys, with a header written for the test.

use std::fs;
use std::path::{Path, PathBuf};

use rusteron_codegen::{ConstantsSpec, ContextSpec, EnumSpec, Generator, Setting, Source};

use crate::common::{Method, docs};

fn bindings_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../rusteron-sys/src/bindings")
}

fn bindings(name: &str) -> Source {
    let path = bindings_dir().join(name);
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Source::new(name, text)
}

/// The problem that names what cannot be generated, as lines.
fn unresolved(sources: &[Source], prefix: &str) -> Vec<String> {
    let spec = ContextSpec::new("Context", prefix, "sys", "crate::ffi");
    let error = Generator::new(sources, &[]).unwrap().context(spec).generate().unwrap_err();
    let listed = error.problems().iter().find(|problem| problem.contains("cannot be generated"));
    let listed = listed.expect("callbacks cannot be generated");
    listed.lines().skip(1).map(|line| line.trim().to_owned()).collect()
}

#[test]
fn callbacks_are_not_generated() {
    let client = bindings("client.rs");
    let callback = "aeron_context_get_error_handler (a function pointer)".to_owned();
    assert!(unresolved(std::slice::from_ref(&client), "aeron_context").contains(&callback));

    let both = [client.clone(), bindings("driver.rs")];
    let driver = unresolved(&both, "aeron_driver_context");
    // The type of this callback is declared in the client's bindings.
    let callback = "aeron_driver_context_get_agent_on_start_function (a function pointer)";
    assert!(driver.contains(&callback.to_owned()), "{driver:#?}");
    let enumeration = "aeron_driver_context_set_threading_mode (no EnumSpec for \
                       aeron_threading_mode_enum)";
    assert!(driver.contains(&enumeration.to_owned()), "{driver:#?}");

    let both = [client, bindings("archive.rs")];
    let archive = unresolved(&both, "aeron_archive_context");
    let pointer = "aeron_archive_context_get_aeron (a pointer to aeron_t)";
    assert!(archive.contains(&pointer.to_owned()), "{archive:#?}");
    assert!(!archive.iter().any(|line| line.contains("persistent_subscription")));
}

#[test]
fn client_context_generates() {
    let client = bindings("client.rs");
    let mut spec = ContextSpec::new("Context", "aeron_context", "sys", "crate::ffi");
    for line in unresolved(std::slice::from_ref(&client), "aeron_context") {
        spec = spec.hand_written(line.split(' ').next().unwrap(), "a callback");
    }
    for name in ["dir", "client_name", "idle_strategy", "idle_strategy_init_args"] {
        spec = spec.setting(Setting::new(name).copied().summary("A string."));
    }
    for name in [
        "driver_timeout_ms",
        "keepalive_interval_ns",
        "resource_linger_duration_ns",
        "idle_sleep_duration_ns",
        "pre_touch_mapped_memory",
        "use_conductor_agent_invoker",
    ] {
        spec = spec.setting(Setting::new(name).summary("Something else."));
    }
    let generator = Generator::new(&[client], &[]).unwrap().context(spec);
    let text = generator.generate().unwrap();
    let setter = Method::find(&text, "set_driver_timeout");
    assert!(setter.signature().contains("value:::std::time::Duration"), "{}", setter.signature());
}

#[test]
fn real_constants_and_enums() {
    let header = "/** Constants. */ typedef struct aeron_counter_constants_stct {\
                  /** A. */ int64_t correlation_id; /** B. */ int64_t registration_id;\
                  /** C. */ int32_t counter_id; } aeron_counter_constants_t;";
    let counter =
        ConstantsSpec::new("aeron_counter_constants_t", "CounterConstants", "sys", "crate::ffi");
    let mode = EnumSpec::new("aeron_threading_mode_t", "ThreadingMode", "sys::driver")
        .summary("Mode.")
        .doc("Dedicated", "D.")
        .doc("SharedNetwork", "N.")
        .doc("Shared", "S.")
        .doc("Invoker", "I.");
    let sources = [bindings("client.rs"), bindings("driver.rs")];
    let text = Generator::new(&sources, &[Source::new("a.h", header)])
        .unwrap()
        .constants(counter)
        .enumeration(mode)
        .generate()
        .unwrap();
    let file = syn::parse_file(&text).unwrap();
    let fields = file.items.iter().find_map(|item| match item {
        syn::Item::Struct(item) => {
            Some(item.fields.iter().map(|field| docs(&field.attrs).concat()).collect::<Vec<_>>())
        }
        _ => None,
    });
    assert_eq!(fields.expect("there is a struct"), ["A.", "B.", "C."]);
    assert!(text.contains(
        "enum ThreadingMode {\n    /// D.\n    Dedicated,\n    /// N.\n    SharedNetwork,"
    ));
}

#[test]
fn error_outside_build_script() {
    // Cargo does not set DEP_* for tests.
    let error = Generator::from_build_env(&["client.rs"], &["aeronc.h"]).unwrap_err();
    assert!(error.to_string().contains("DEP_AERON_BINDINGS is not set"), "{error}");
}
