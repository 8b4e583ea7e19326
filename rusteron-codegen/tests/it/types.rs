//! Constants and enums: the generated code, and each mistake that a spec can make.

use rusteron_codegen::{ConstantsSpec, EnumSpec, Error};

use crate::common::{BINDINGS, HEADER, Method, docs, generator_of, mode, tokens};

const STRUCTS: &str = r#"
    pub struct tiny_constants_stct {
        pub channel: *const ::core::ffi::c_char,
        pub handler: tiny_handler_t,
        pub registration_id: i64,
        pub type_: i32,
        pub is_open: bool,
    }
    pub type tiny_constants_t = tiny_constants_stct;
    pub type tiny_handler_t = ::core::option::Option<unsafe extern "C" fn()>;
    pub struct tiny_ids_stct { pub id: i32 }
"#;

const STRUCTS_HEADER: &str = "
/** What does not change. */
typedef struct tiny_constants_stct
{
    /**
     * Get the channel of [it].
     */
    const char *channel;
    /** A callback. */
    tiny_handler_t handler;
    /** Registration id */
    int64_t registration_id;
    int32_t type;
    /** Whether open. */
    bool is_open;
}
tiny_constants_t;
/** Ids. */
struct tiny_ids_stct { /** The id. */ int32_t id; };
";

fn constants() -> ConstantsSpec {
    ConstantsSpec::new("tiny_constants_t", "Constants", "sys::tiny", "crate::ffi")
        .skip("handler", "a callback")
        .doc("type_", "The type.")
        .rename("type_", "kind")
}

fn generate(spec: ConstantsSpec) -> Result<String, Error> {
    generator_of(STRUCTS, STRUCTS_HEADER).constants(spec).generate()
}

fn problems(spec: ConstantsSpec) -> Vec<String> {
    generate(spec).expect_err("the spec is wrong on purpose").problems().to_vec()
}

fn structure(text: &str) -> syn::ItemStruct {
    let items = syn::parse_file(text).unwrap().items.into_iter();
    let mut structs = items.filter_map(|item| match item {
        syn::Item::Struct(item) => Some(item),
        _ => None,
    });
    structs.next().expect("there is a struct")
}

#[test]
fn constants_become_an_owned_struct() {
    let text = generate(constants()).unwrap();
    let item = structure(&text);
    assert_eq!(item.ident, "Constants");
    let attributes: Vec<_> = item.attrs.iter().map(tokens).collect();
    assert!(attributes.contains(&"#[derive(Debug,Clone,PartialEq,Eq)]".to_owned()));
    assert!(attributes.contains(&"#[non_exhaustive]".to_owned()));
    assert!(attributes.contains(&r#"#[doc(alias="tiny_constants_t")]"#.to_owned()));
    assert_eq!(docs(&item.attrs), ["What does not change.", "Corresponds to `tiny_constants_t`."]);
    let fields: Vec<_> = item
        .fields
        .iter()
        .map(|field| {
            let name = field.ident.as_ref().unwrap().to_string();
            (name, tokens(&field.ty), docs(&field.attrs).concat())
        })
        .collect();
    let expected = [
        ("channel", "::std::string::String", "The channel of \\[it\\]."),
        ("registration_id", "i64", "Registration id."),
        ("kind", "i32", "The type."),
        ("is_open", "bool", "Whether open."),
    ];
    let expected = expected.map(|(name, ty, doc)| (name.into(), ty.into(), doc.into()));
    assert_eq!(fields, expected);
}

#[test]
fn reading_strings_is_unsafe() {
    let text = generate(constants()).unwrap();
    let method = Method::find(&text, "from_raw");
    assert_eq!(method.signature(), "unsafefnfrom_raw(raw:&sys::tiny::tiny_constants_stct)->Self");
    assert!(method.docs().contains(&"# Safety".to_owned()));
    let body = method.body();
    assert!(body.contains("channel:unsafe{crate::ffi::lossy(raw.channel)}.into_owned()"), "{body}");
    assert!(body.contains("kind:raw.type_,"), "{body}");
    assert!(text.contains(
        "// SAFETY: the caller vouches for the strings of `raw`.\n            channel: unsafe {"
    ));

    let ids = ConstantsSpec::new("tiny_ids_stct", "Ids", "sys::tiny", "crate::ffi");
    let text = generate(ids).unwrap();
    let method = Method::find(&text, "from_raw");
    assert_eq!(method.signature(), "fnfrom_raw(raw:&sys::tiny::tiny_ids_stct)->Self");
    assert!(!text.contains("unsafe"), "{text}");
}

#[test]
fn missing_constants_are_reported() {
    let new = || ConstantsSpec::new("tiny_constants_t", "Constants", "sys::tiny", "crate::ffi");
    assert_eq!(
        problems(new()),
        [
            "Constants: handler is a function pointer; skip it, saying why",
            "Constants: neither header nor spec describes type_",
        ]
    );
    assert_eq!(
        problems(constants().skip("gone", "").doc("lost", "x")),
        [
            "Constants: tiny_constants_t has no field gone",
            "Constants: tiny_constants_t has no field lost",
        ]
    );
    let unknown = ConstantsSpec::new("tiny_gone_t", "Gone", "sys::tiny", "crate::ffi");
    assert_eq!(problems(unknown), ["Gone: the bindings have no struct tiny_gone_t"]);
    let error = generator_of(STRUCTS, "").constants(constants()).generate().unwrap_err();
    assert_eq!(error.problems().len(), 4, "{error}");
    assert_eq!(error.problems()[0], "Constants: neither header nor spec describes the struct");
}

#[test]
fn enums_convert_in_both_directions() {
    let text = generator_of(BINDINGS, HEADER).enumeration(mode()).generate().unwrap();
    let file = syn::parse_file(&text).unwrap();
    let item = file.items.iter().find_map(|item| match item {
        syn::Item::Enum(item) => Some(item),
        _ => None,
    });
    let item = item.expect("there is an enum");
    assert_eq!(item.ident, "Mode");
    assert_eq!(docs(&item.attrs), ["The mode.", "Corresponds to `tiny_mode_t`."]);
    let variants: Vec<_> = item
        .variants
        .iter()
        .map(|variant| (variant.ident.to_string(), docs(&variant.attrs).concat()))
        .collect();
    let expected = [("One", "The first."), ("OneAndHalf", "More.")];
    assert_eq!(variants, expected.map(|(name, doc)| (name.to_owned(), doc.to_owned())));

    let to_raw = Method::find(&text, "to_raw");
    assert_eq!(to_raw.signature(), "fnto_raw(self)->sys::tiny::tiny_mode_enum");
    assert!(
        to_raw
            .body()
            .contains("Self::OneAndHalf=>sys::tiny::tiny_mode_enum_TINY_MODE_ONE_AND_HALF,")
    );
    let from_raw = Method::find(&text, "from_raw");
    assert_eq!(from_raw.signature(), "fnfrom_raw(raw:sys::tiny::tiny_mode_enum)->Option<Self>");
    assert!(from_raw.body().contains("sys::tiny::tiny_mode_enum_TINY_MODE_ONE=>Some(Self::One),"));
    assert!(from_raw.body().contains("_=>None"));
}

#[test]
fn missing_enums_are_reported() {
    let problems = |spec| {
        let error = generator_of(BINDINGS, HEADER).enumeration(spec).generate().unwrap_err();
        error.problems().to_vec()
    };
    assert_eq!(
        problems(EnumSpec::new("tiny_mode_t", "Mode", "sys::tiny")),
        ["Mode: neither header nor spec describes OneAndHalf"]
    );
    assert_eq!(problems(mode().doc("Two", "x")), ["Mode: a doc for Two, which is no variant"]);
    assert_eq!(
        problems(EnumSpec::new("tiny_gone_t", "Gone", "sys::tiny")),
        ["Gone: the bindings have no enum tiny_gone_t"]
    );
    let error = generator_of(BINDINGS, "").enumeration(mode()).generate().unwrap_err();
    assert_eq!(error.problems(), ["Mode: neither header nor spec describes the enum"]);
}
