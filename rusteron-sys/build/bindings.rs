//! Regenerates the raw bindings from Aeron's headers (feature `bindgen`).
//!
//! No comments are carried over, so the result depends only on declarations. The formatter is a
//! library, so the result does not depend on an installed rustfmt.

use std::path::Path;

use crate::manifest_dir;
use crate::source::Sources;

struct Unit {
    /// The name of both the header in `shim/` and the Rust file.
    name: &'static str,
    /// Files whose declarations belong to this unit. Other declarations come from `uses`.
    allowed_files: &'static str,
    uses: &'static str,
}

pub(crate) fn generate(sources: &Sources, out_dir: &Path) -> Result<(), String> {
    let units = [
        Unit {
            name: "client",
            allowed_files: r".*(aeronc|aeron_common|aeron_counters|aeron_client_error|rusteron_shim)\.h",
            uses: "",
        },
        Unit {
            name: "driver",
            allowed_files: r".*(aeronmd|rusteron_driver_shim)\.h",
            uses: "use super::*;",
        },
        Unit {
            name: "archive",
            allowed_files: r".*(aeron_archive|aeron_archive_client_error|rusteron_archive)\.h",
            uses: "use super::*;",
        },
    ];
    for unit in units {
        unit.generate(sources, out_dir)?;
    }
    Ok(())
}

impl Unit {
    fn generate(&self, sources: &Sources, out_dir: &Path) -> Result<(), String> {
        let header = manifest_dir().join("shim").join(format!("{}.h", self.name));
        let mut builder = bindgen::Builder::default()
            .header(header.to_string_lossy())
            .clang_args(["-std=c11", "-D_GNU_SOURCE", "-D_FILE_OFFSET_BITS=64"])
            .clang_arg(format!("-I{}", sources.client_dir().display()))
            .clang_arg(format!("-I{}", sources.driver_dir().display()))
            .clang_arg(format!("-I{}", sources.archive_dir().display()))
            .clang_arg(format!("-I{}", manifest_dir().join("shim").display()))
            .allowlist_file(self.allowed_files)
            .allowlist_recursively(self.uses.is_empty())
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
        if !self.uses.is_empty() {
            builder = builder.raw_line(self.uses);
        }
        let bindings = builder
            .generate()
            .map_err(|error| format!("bindgen, {}: {error}", header.display()))?;
        let path = out_dir.join(format!("{}.rs", self.name));
        bindings.write_to_file(&path).map_err(|error| format!("{}: {error}", path.display()))
    }
}
