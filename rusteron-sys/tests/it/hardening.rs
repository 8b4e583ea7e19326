//! The compiler's checks are in the C code.

use std::fs;
use std::path::Path;

/// Returns whether the library refers to a symbol. Its objects have the names of their symbols in
/// them.
fn refers_to(symbol: &str) -> bool {
    let libraries = fs::read_dir(Path::new(env!("OUT_DIR"))).expect("the build's directory");
    let libraries = libraries.map(|entry| entry.expect("an entry").path());
    let mut libraries = libraries.filter(|path| path.extension().is_some_and(|it| it == "a"));
    libraries.any(|path| {
        let library = fs::read(path).expect("a library");
        library.windows(symbol.len()).any(|bytes| bytes == symbol.as_bytes())
    })
}

#[test]
fn stack_is_protected() {
    assert!(refers_to("__stack_chk_fail"));
}

/// Other C libraries have no such functions, and flags for the compiler may turn the optimiser off.
#[test]
#[cfg(target_env = "gnu")]
fn library_functions_compare_lengths() {
    if option_env!("RUSTERON_CFLAGS").is_some_and(|flags| !flags.is_empty()) {
        return;
    }
    for function in ["__memcpy_chk", "__snprintf_chk", "__strncpy_chk"] {
        assert!(refers_to(function), "{function}");
    }
}
