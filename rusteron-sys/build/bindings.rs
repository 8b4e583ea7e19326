//! Regenerates the raw bindings from Aeron's headers (feature `bindgen`).
//!
//! No comments are carried over, so the result depends only on declarations. The formatter is a
//! library, so the result does not depend on an installed rustfmt.

use std::path::Path;

use crate::manifest_dir;
use crate::source::Sources;

/// The names of the Rust files, the headers whose declarations belong to them, and where the other declarations come
/// from.
const UNITS: [(&str, &[&str], Option<&str>); 3] = [
    (
        "client",
        &["aeronc", "aeron_client_error", "aeron_common", "aeron_counters", "rusteron_shim"],
        None,
    ),
    ("driver", &["aeronmd", "rusteron_driver_shim"], Some("use super::*;")),
    (
        "archive",
        &[
            "aeron_archive_client_error",
            "client/aeron_archive",
            "client/aeron_archive_proxy",
            "rusteron_archive",
        ],
        Some("use super::*;"),
    ),
];

pub(crate) fn generate(sources: &Sources, out_dir: &Path) -> Result<(), String> {
    for (name, headers, uses) in UNITS {
        let mut contents = "#include <stddef.h>\n#include \"aeronc.h\"\n".to_owned();
        for header in headers {
            contents += &format!("#include \"{header}.h\"\n");
        }
        let mut builder = bindgen::Builder::default()
            .header_contents("headers.h", &contents)
            .clang_args(["-std=c11", "-D_GNU_SOURCE", "-D_FILE_OFFSET_BITS=64"])
            .clang_arg(format!("-I{}", sources.client_dir().display()))
            .clang_arg(format!("-I{}", sources.driver_dir().display()))
            .clang_arg(format!("-I{}", sources.archive_dir().display()))
            .clang_arg(format!("-I{}", manifest_dir().join("shim").display()))
            .allowlist_file(format!(r".*/({})\.h", headers.join("|")))
            .allowlist_recursively(uses.is_none())
            // va_list is a different type on every platform, and Rust never calls a function with
            // it.
            .opaque_type(".*va_list.*")
            .blocklist_type("aeron_fprintf_handler_t")
            .blocklist_function("aeron_(set|get)_fprintf_handler")
            .blocklist_type(".*va_list.*")
            .generate_comments(false)
            .derive_default(false)
            .use_core()
            .layout_tests(true)
            .merge_extern_blocks(true)
            .rust_edition(bindgen::RustEdition::Edition2024)
            .rust_target(bindgen::RustTarget::stable(85, 0).map_err(|error| error.to_string())?)
            .formatter(bindgen::Formatter::Prettyplease);
        if let Some(uses) = uses {
            builder = builder.raw_line(uses);
        }
        let bindings = builder.generate().map_err(|error| format!("bindgen, {name}: {error}"))?;
        let path = out_dir.join(format!("{name}.rs"));
        bindings.write_to_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}
