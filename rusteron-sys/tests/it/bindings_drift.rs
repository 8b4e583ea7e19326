//! The committed bindings are what bindgen makes of Aeron's headers.

#[cfg(not(feature = "bindgen"))]
#[test]
fn committed_bindings_match_the_headers() {
    crate::skip("comparing the bindings needs the feature `bindgen` (and libclang)");
}

#[cfg(feature = "bindgen")]
#[test]
fn committed_bindings_match_the_headers() {
    use std::path::Path;
    use std::{env, fs};

    if cfg!(target_env = "msvc") {
        return crate::skip("MSVC gives some enums another type than the committed bindings have");
    }
    let update = env::var_os("RUSTERON_UPDATE_BINDINGS").is_some_and(|value| value == "1");
    let committed_dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join("bindings");
    let generated_dir = Path::new(env!("RUSTERON_BINDINGS_DIR"));
    assert_ne!(committed_dir, generated_dir, "the build script generated nothing");

    let mut report = String::new();
    for name in ["client.rs", "driver.rs", "archive.rs"] {
        let committed_file = committed_dir.join(name);
        let generated = fs::read_to_string(generated_dir.join(name)).unwrap();
        let committed = fs::read_to_string(&committed_file).unwrap_or_default();
        if generated == committed {
            continue;
        }
        if update {
            fs::write(&committed_file, &generated).unwrap();
            println!("rewrote {}", committed_file.display());
        } else {
            report += &first_differences(name, &committed, &generated);
        }
    }
    assert!(
        report.is_empty(),
        "the committed bindings differ from the headers:\n{report}\
         `RUSTERON_UPDATE_BINDINGS=1` makes this test rewrite them"
    );
}

/// A few lines are enough to recognise what changed, and keep the output bounded.
#[cfg(feature = "bindgen")]
fn first_differences(name: &str, committed: &str, generated: &str) -> String {
    const SHOWN: usize = 5;
    let (old, new): (Vec<_>, Vec<_>) = (committed.lines().collect(), generated.lines().collect());
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    if same == old.len() && same == new.len() {
        return format!("{name}: only the line ends differ\n");
    }
    let mut report = format!("{name}, from line {}:\n", same + 1);
    for (sign, lines) in [("-", &old), ("+", &new)] {
        for line in lines.iter().skip(same).take(SHOWN) {
            report += &format!("  {sign} {line}\n");
        }
    }
    report
}
