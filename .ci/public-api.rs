#!/usr/bin/env -S cargo +nightly -Zscript
---
[package]
edition = "2024"

[dependencies]
# Reads what this month's nightly rustdoc writes. If it cannot, take the newest.
public-api = { version = "=0.52.2", default-features = false }
regex = "1"
---
//! Prints the public items in files of rustdoc's JSON, one a line. The tests `thread_traits` say
//! which types may go to other threads.

use regex::Regex;

/// Modules for rusteron's own crates, which users do not see.
const INTERNAL: &str = r"^[a-z].* (rusteron_client::raw_client|rusteron_core::(ffi|files|log_buffer|mark_file|own_dirs|panic|printable|program|sbe|scan|settings|threads))\b";

fn main() {
    let regex = |pattern| Regex::new(pattern).expect("a pattern");
    // An item up to the end of its own path, and the rest.
    let own = regex(r"^([a-z ]*rusteron_[\w:]*)(.*)$");
    let internal = regex(INTERNAL);
    // rustdoc names a type by the file that it is in, which may be private.
    let modules = regex(r"(rusteron_[a-z_]+)(::[a-z]\w*)*::([A-Z])");
    let lifetime = regex(r"<'\w+>|'\w+ ");
    for path in std::env::args().skip(1) {
        let builder = public_api::Builder::from_rustdoc_json(&path).omit_blanket_impls(true);
        let builder = builder.omit_auto_trait_impls(true).omit_auto_derived_impls(true);
        let api = builder.build().unwrap_or_else(|error| panic!("{path}: {error}"));
        for item in api.items().map(|item| lifetime.replace_all(&item.to_string(), "").into_owned())
        {
            let (own, rest) = match own.captures(&item) {
                Some(parts) => (parts[1].to_owned(), parts[2].to_owned()),
                None => (String::new(), item.clone()),
            };
            // Users write handlers.
            let is_internal = internal.is_match(&own) && !own.contains("ffi::handlers");
            // The heads of types' own methods. The methods have lines of their own.
            let is_head = item.starts_with("impl") && !item.contains(" for ");
            if !is_internal && !is_head {
                println!("{own}{}", modules.replace_all(&rest, "$1::$3"));
            }
        }
    }
}
