//! Property files of clients and drivers, and the contexts that are made after them. An input is a file.

#![no_main]

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::hint::black_box;
use std::path::PathBuf;

use libfuzzer_sys::fuzz_target;
use rusteron_client::{Context, ErrorKind, load_properties, load_properties_file};
use rusteron_fuzz::stage::work_dir;
use rusteron_media_driver::{DriverContext, load_properties_from};

struct Process {
    environment: BTreeMap<OsString, OsString>,
    file: PathBuf,
}

impl Process {
    fn new() -> Self {
        let dir = work_dir("properties");
        fs::create_dir_all(&dir).expect("a directory");
        Self { environment: env::vars_os().collect(), file: dir.join("fuzzed.properties") }
    }

    fn run(&self, bytes: &[u8]) {
        fs::write(&self.file, bytes).expect("a file");
        // SAFETY: no other thread of this process uses the environment.
        let from_file = unsafe { load_properties_file(&self.file) };
        let after_file: BTreeMap<_, _> = env::vars_os().collect();
        self.restore();
        match std::str::from_utf8(bytes) {
            Ok(text) => {
                // SAFETY: as above.
                let from_text = unsafe { load_properties(text) };
                assert_eq!(from_file.is_ok(), from_text.is_ok());
                assert!(after_file.iter().eq(env::vars_os().collect::<BTreeMap<_, _>>().iter()));
                if let Err(error) = from_text {
                    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
                }
            }
            Err(_) => assert!(from_file.is_err(), "a file that is no text"),
        }
        self.restore();
        let location = self.file.to_str().expect("a path that is text");
        // SAFETY: as above.
        let from_location = unsafe { load_properties_from(location) };
        assert_eq!(from_location.is_ok(), from_file.is_ok());
        remove_names_of_code();
        black_box(Context::new().map(|context| format!("{context:?}")).is_ok());
        black_box(DriverContext::new().map(|context| format!("{context:?}")).is_ok());
        self.restore();
    }

    /// Makes the environment what it was.
    fn restore(&self) {
        for (name, _) in env::vars_os().filter(|(name, _)| !self.environment.contains_key(name)) {
            // SAFETY: as in `run`.
            unsafe { env::remove_var(name) };
        }
        for (name, value) in &self.environment {
            if env::var_os(name).as_ref() != Some(value) {
                // SAFETY: as in `run`.
                unsafe { env::set_var(name, value) };
            }
        }
    }
}

/// The driver calls the functions that some settings name, wherever it finds them, and logs to files from a thread of its
/// own if others are set. They are trusted as programs are.
fn remove_names_of_code() {
    const KNOWN: [&str; 10] = [
        "",
        "sleeping",
        "yield",
        "backoff",
        "busy_spin",
        "noop",
        "default",
        "max",
        "min",
        "tagged",
    ];
    for (name, value) in env::vars_os() {
        let Some(text) = name.to_str().filter(|name| name.starts_with("AERON_")) else { continue };
        let is_code =
            ["SUPPLIER", "STRATEGY", "INTERCEPTORS", "LIBRARIES", "BINDINGS", "EVENT_LOG"]
                .iter()
                .any(|kind| text.contains(kind));
        if is_code && !value.to_str().is_some_and(|value| KNOWN.contains(&value)) {
            // SAFETY: as in `run`.
            unsafe { env::remove_var(name) };
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    thread_local! {
        static PROCESS: Process = Process::new();
    }
    PROCESS.with(|process| process.run(bytes));
});
