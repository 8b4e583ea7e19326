//! A small C library in the manner of Aeron, and questions to the text generated from it.

#![allow(missing_docs, dead_code, unreachable_pub)]

use quote::ToTokens;
use rusteron_codegen::{ContextSpec, EnumSpec, Error, Generator, Setting, Source};

pub const BINDINGS: &str = r#"
    pub struct tiny_context_stct { _unused: [u8; 0] }
    pub type tiny_context_t = tiny_context_stct;
    pub const tiny_mode_enum_TINY_MODE_ONE: tiny_mode_enum = 0;
    pub const tiny_mode_enum_TINY_MODE_ONE_AND_HALF: tiny_mode_enum = 1;
    pub type tiny_mode_enum = ::core::ffi::c_uint;
    pub use self::tiny_mode_enum as tiny_mode_t;
    pub type tiny_handler_t = ::core::option::Option<unsafe extern "C" fn()>;
    unsafe extern "C" {
        pub fn tiny_context_init(context: *mut *mut tiny_context_t) -> ::core::ffi::c_int;
        pub fn tiny_context_set_dir(context: *mut tiny_context_t, value: *const ::core::ffi::c_char) -> ::core::ffi::c_int;
        pub fn tiny_context_get_dir(context: *mut tiny_context_t) -> *const ::core::ffi::c_char;
        pub fn tiny_context_set_label(context: *mut tiny_context_t, value: *const ::core::ffi::c_char) -> ::core::ffi::c_int;
        pub fn tiny_context_get_label(context: *mut tiny_context_t) -> *const ::core::ffi::c_char;
        pub fn tiny_context_set_timeout_ns(context: *mut tiny_context_t, value: u64) -> ::core::ffi::c_int;
        pub fn tiny_context_get_timeout_ns(context: *mut tiny_context_t) -> u64;
        pub fn tiny_context_set_patience_ms(context: *mut tiny_context_t, value: u64) -> ::core::ffi::c_int;
        pub fn tiny_context_get_patience_ms(context: *mut tiny_context_t) -> u64;
        pub fn tiny_context_set_threshold_ns(context: *mut tiny_context_t, value: u64) -> i64;
        pub fn tiny_context_get_threshold_ns(context: *mut tiny_context_t) -> i64;
        pub fn tiny_context_set_buffer_length(context: *mut tiny_context_t, value: usize) -> ::core::ffi::c_int;
        pub fn tiny_context_get_buffer_length(context: *mut tiny_context_t) -> usize;
        pub fn tiny_context_set_ratio(context: *mut tiny_context_t, value: i32) -> ::core::ffi::c_int;
        pub fn tiny_context_get_ratio(context: *mut tiny_context_t) -> i32;
        pub fn tiny_context_set_enabled(context: *mut tiny_context_t, value: bool) -> ::core::ffi::c_int;
        pub fn tiny_context_get_enabled(context: *mut tiny_context_t) -> ::core::ffi::c_int;
        pub fn tiny_context_set_mode(context: *mut tiny_context_t, value: tiny_mode_t) -> ::core::ffi::c_int;
        pub fn tiny_context_get_mode(context: *mut tiny_context_t) -> tiny_mode_t;
        pub fn tiny_context_set_type(context: *mut tiny_context_t, value: u8) -> ::core::ffi::c_int;
        pub fn tiny_context_get_type(context: *mut tiny_context_t) -> u8;
        pub fn tiny_context_set_handler(context: *mut tiny_context_t, handler: tiny_handler_t, clientd: *mut ::core::ffi::c_void) -> ::core::ffi::c_int;
        pub fn tiny_context_get_handler(context: *mut tiny_context_t) -> tiny_handler_t;
        pub fn tiny_other(context: *mut tiny_context_t) -> ::core::ffi::c_int;
    }
"#;

pub const HEADER: &str = r#"
/**
 * The directory [shared] by all.
 */
#define TINY_DIR_ENV_VAR "TINY_DIR"
int tiny_context_set_dir(tiny_context_t *context, const char *value);
const char *tiny_context_get_dir(tiny_context_t *context);
/** A label. */
int tiny_context_set_label(tiny_context_t *context, const char *value);
/** Timeout in nanoseconds. */
#define TINY_TIMEOUT_ENV_VAR "TINY_TIMEOUT"
int tiny_context_set_timeout_ns(tiny_context_t *context, uint64_t value);
#define TINY_PATIENCE_ENV_VAR "TINY_PATIENCE"
int tiny_context_set_patience_ms(tiny_context_t *context, uint64_t value);
/** Threshold. */
int64_t tiny_context_set_threshold_ns(tiny_context_t *context, uint64_t value);
/** Room for messages. */
int tiny_context_set_buffer_length(tiny_context_t *context, size_t value);
/** Ratio. */
int tiny_context_set_ratio(tiny_context_t *context, int32_t value);
/** Whether enabled. */
int tiny_context_set_enabled(tiny_context_t *context, bool value);
/** The mode. */
typedef enum tiny_mode_enum { /** The first. */ TINY_MODE_ONE, TINY_MODE_ONE_AND_HALF } tiny_mode_t;
/** Which mode. */
int tiny_context_set_mode(tiny_context_t *context, tiny_mode_t value);
/** The type. */
int tiny_context_set_type(tiny_context_t *context, uint8_t value);
"#;

pub fn generator_of(bindings: &str, header: &str) -> Generator {
    Generator::new(&[Source::new("tiny.rs", bindings)], &[Source::new("tiny.h", header)]).unwrap()
}

/// A spec that lacks nothing.
pub fn context() -> ContextSpec {
    ContextSpec::new("Context", "tiny_context", "sys::tiny", "crate::ffi")
        .setting(Setting::new("dir").path().copied())
        .setting(Setting::new("label").copied())
        .setting(Setting::new("patience_ms").summary("How long to wait."))
        .hand_written("tiny_context_init", "Context::new")
        .hand_written("tiny_context_set_handler", "Context::set_handler")
        .hand_written("tiny_context_get_handler", "not offered")
}

pub fn mode() -> EnumSpec {
    EnumSpec::new("tiny_mode_t", "Mode", "sys::tiny").doc("OneAndHalf", "More.")
}

pub fn generate(context: ContextSpec) -> Result<String, Error> {
    generator_of(BINDINGS, HEADER).enumeration(mode()).context(context).generate()
}

/// The problems with a spec, which must have some.
pub fn problems(context: ContextSpec) -> Vec<String> {
    generate(context).expect_err("the spec is wrong on purpose").problems().to_vec()
}

pub fn tokens(text: impl ToTokens) -> String {
    text.to_token_stream().to_string().replace(' ', "")
}

/// A method of the generated text, found by parsing it.
pub struct Method(syn::ImplItemFn);

impl Method {
    pub fn find(text: &str, name: &str) -> Self {
        Self::find_in(text, name).unwrap_or_else(|| panic!("no method {name} in:\n{text}"))
    }

    pub fn find_in(text: &str, name: &str) -> Option<Self> {
        let file = syn::parse_file(text).expect("generated text is Rust");
        file.items.into_iter().find_map(|item| match item {
            syn::Item::Impl(block) => block.items.into_iter().find_map(|item| match item {
                syn::ImplItem::Fn(method) if method.sig.ident == name => Some(Self(method)),
                _ => None,
            }),
            _ => None,
        })
    }

    pub fn signature(&self) -> String {
        tokens(&self.0.sig)
    }

    pub fn body(&self) -> String {
        tokens(&self.0.block)
    }

    pub fn docs(&self) -> Vec<String> {
        docs(&self.0.attrs)
    }
}

/// Doc comment lines, blank ones left out.
pub fn docs(attributes: &[syn::Attribute]) -> Vec<String> {
    attributes
        .iter()
        .filter_map(|attribute| match &attribute.meta {
            syn::Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
                syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => {
                    Some(text.value().trim().to_owned())
                }
                _ => None,
            },
            _ => None,
        })
        .filter(|line| !line.is_empty())
        .collect()
}
