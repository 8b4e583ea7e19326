//! Declarations of the raw bindings: functions, structs, enums in bindgen's constants, aliases.

use std::collections::HashMap;

use crate::error::Error;

/// The declarations of one or more files of raw bindings.
#[derive(Debug, Default)]
pub(crate) struct Bindings {
    /// In the order of the bindings, which is the order of the header.
    pub(crate) functions: Vec<Function>,
    structs: HashMap<String, Vec<Field>>,
    constants: Vec<(String, CType)>,
    aliases: HashMap<String, CType>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) parameters: Vec<CType>,
    pub(crate) output: CType,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) ty: CType,
}

/// A C type, in as much detail as the generator needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CType {
    Void,
    Bool,
    /// An integer with the same name on every Rust platform.
    Integer(&'static str),
    /// C's `int`: a result code or a truth value, depending on the function.
    Int,
    /// `const char *`.
    Text,
    /// Any other pointer, with the name of its target type.
    Pointer(String),
    Callback,
    /// A name that the bindings declare.
    Named(String),
    Other,
}

const INTEGERS: &[&str] = &["u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "usize", "isize"];

impl Bindings {
    /// Adds the declarations of one file.
    pub(crate) fn add(&mut self, file_name: &str, text: &str) -> Result<(), Error> {
        let file = syn::parse_file(text)
            .map_err(|error| Error::new(format!("{file_name} is not Rust: {error}")))?;
        file.items.into_iter().for_each(|item| self.add_item(item));
        Ok(())
    }

    pub(crate) fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|function| function.name == name)
    }

    /// Returns the struct of a name, or of an alias.
    pub(crate) fn structure(&self, name: &str) -> Option<(String, &[Field])> {
        let CType::Named(name) = self.resolve(&CType::Named(name.to_owned())) else { return None };
        let fields = self.structs.get(&name)?;
        Some((name, fields))
    }

    /// Returns the C names of an enum's values. Empty if the bindings have no enum of this name.
    pub(crate) fn enum_values(&self, enum_name: &str) -> Vec<&str> {
        let prefix = format!("{enum_name}_");
        let of_this_enum = |ty: &CType| matches!(ty, CType::Named(name) if name == enum_name);
        self.constants
            .iter()
            .filter(|(_, ty)| of_this_enum(ty))
            .filter_map(|(name, _)| name.strip_prefix(&prefix))
            .collect()
    }

    /// Follows aliases until a struct, an enum or a type that is not an alias.
    pub(crate) fn resolve(&self, ty: &CType) -> CType {
        let mut ty = ty;
        loop {
            match ty {
                // bindgen declares an enum as an alias of an integer; its constants tell it apart.
                CType::Named(name) if self.enum_values(name).is_empty() => {
                    match self.aliases.get(name) {
                        Some(target) => ty = target,
                        None => return ty.clone(),
                    }
                }
                _ => return ty.clone(),
            }
        }
    }

    fn add_item(&mut self, item: syn::Item) {
        match item {
            syn::Item::ForeignMod(block) => {
                for item in block.items {
                    if let syn::ForeignItem::Fn(function) = item {
                        self.functions.push(Function::new(&function.sig));
                    }
                }
            }
            syn::Item::Struct(item) => {
                let fields = item.fields.iter().filter_map(|field| {
                    let name = field.ident.as_ref()?.to_string();
                    Some(Field { name, ty: CType::new(&field.ty) })
                });
                self.structs.insert(item.ident.to_string(), fields.collect());
            }
            syn::Item::Const(item) => {
                self.constants.push((item.ident.to_string(), CType::new(&item.ty)));
            }
            syn::Item::Type(item) => {
                self.aliases.insert(item.ident.to_string(), CType::new(&item.ty));
            }
            syn::Item::Use(item) => self.add_renames(&item.tree),
            _ => {}
        }
    }

    /// `pub use self::x_enum as x_t;` is how bindgen spells a typedef of an enum.
    fn add_renames(&mut self, tree: &syn::UseTree) {
        match tree {
            syn::UseTree::Path(path) => self.add_renames(&path.tree),
            syn::UseTree::Rename(rename) => {
                let target = CType::Named(rename.ident.to_string());
                self.aliases.insert(rename.rename.to_string(), target);
            }
            _ => {}
        }
    }
}

impl Function {
    fn new(signature: &syn::Signature) -> Self {
        let parameters = signature.inputs.iter().map(|input| match input {
            syn::FnArg::Typed(parameter) => CType::new(&parameter.ty),
            syn::FnArg::Receiver(_) => CType::Other,
        });
        let output = match &signature.output {
            syn::ReturnType::Default => CType::Void,
            syn::ReturnType::Type(_, ty) => CType::new(ty),
        };
        Self { name: signature.ident.to_string(), parameters: parameters.collect(), output }
    }
}

impl CType {
    fn new(ty: &syn::Type) -> Self {
        match ty {
            syn::Type::Ptr(pointer) => match last_segment(&pointer.elem).as_deref() {
                Some("c_char") if pointer.const_token.is_some() => Self::Text,
                target => Self::Pointer(target.unwrap_or("a pointer").to_owned()),
            },
            syn::Type::Path(_) => match last_segment(ty).as_deref() {
                Some("bool") => Self::Bool,
                Some("c_int") => Self::Int,
                Some("Option") => Self::Callback,
                Some(name) => INTEGERS
                    .iter()
                    .find(|integer| **integer == name)
                    .map_or_else(|| Self::Named(name.to_owned()), |integer| Self::Integer(integer)),
                None => Self::Other,
            },
            _ => Self::Other,
        }
    }
}

fn last_segment(ty: &syn::Type) -> Option<String> {
    match ty {
        syn::Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        pub const mode_enum_MODE_A: mode_enum = 0;
        pub const mode_enum_MODE_B: mode_enum = 1;
        pub type mode_enum = ::core::ffi::c_uint;
        pub use self::mode_enum as mode_t;
        pub type handler_t = ::core::option::Option<unsafe extern "C" fn()>;
        pub struct constants_stct { pub channel: *const ::core::ffi::c_char, pub id: i64 }
        pub type constants_t = constants_stct;
        unsafe extern "C" {
            pub fn set(context: *mut context_t, mode: mode_t) -> ::core::ffi::c_int;
            pub fn handle(handler: handler_t, clientd: *mut ::core::ffi::c_void);
        }
    "#;

    fn bindings() -> Bindings {
        let mut bindings = Bindings::default();
        bindings.add("test.rs", TEXT).unwrap();
        bindings
    }

    #[test]
    fn functions_and_their_types() {
        let bindings = bindings();
        let set = bindings.function("set").unwrap();
        assert_eq!(set.output, CType::Int);
        assert_eq!(set.parameters[0], CType::Pointer("context_t".into()));
        assert_eq!(bindings.resolve(&set.parameters[1]), CType::Named("mode_enum".into()));
        let handle = bindings.function("handle").unwrap();
        assert_eq!(bindings.resolve(&handle.parameters[0]), CType::Callback);
        assert_eq!(handle.parameters[1], CType::Pointer("c_void".into()));
        assert_eq!(handle.output, CType::Void);
    }

    #[test]
    fn enums_are_found_by_their_constants() {
        assert_eq!(bindings().enum_values("mode_enum"), ["MODE_A", "MODE_B"]);
        assert!(bindings().enum_values("constants_t").is_empty());
    }

    #[test]
    fn structs_are_found_by_alias() {
        let bindings = bindings();
        let (name, fields) = bindings.structure("constants_t").unwrap();
        assert_eq!(name, "constants_stct");
        assert_eq!(fields[0].ty, CType::Text);
        assert_eq!(fields[1].ty, CType::Integer("i64"));
        assert!(bindings.structure("mode_t").is_none());
    }

    #[test]
    fn a_syntax_error_names_the_file() {
        let error = Bindings::default().add("broken.rs", "\nfn (").unwrap_err();
        assert!(error.problems()[0].starts_with("broken.rs is not Rust"), "{error}");
    }
}
