//! A build script's facts about one setting of a context, and the conversion of its C type to Rust.

use crate::bindings::{Bindings, CType};
use crate::enumeration::EnumSpec;

/// Facts about one setting of a context that bindings and headers do not have.
///
/// Every setting with a string needs one. It says whether Aeron copies the string
/// ([`copied`](Self::copied)) or retains the pointer ([`retained`](Self::retained)). The C
/// signatures are equal, and a wrong guess is a dangling pointer.
#[derive(Debug, Clone)]
pub struct Setting {
    pub(crate) name: String,
    pub(crate) getter: Option<String>,
    pub(crate) renamed: Option<String>,
    pub(crate) summary: Option<String>,
    pub(crate) note: Option<String>,
    pub(crate) environment: Option<String>,
    pub(crate) ownership: Option<Ownership>,
    pub(crate) form: Form,
    pub(crate) bytes: bool,
}

/// Aeron's use of a string that it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ownership {
    Copied,
    Retained,
}

/// The Rust type that a setting asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    FromC,
    Path,
    Choice(String),
    Optional,
}

impl Setting {
    /// Takes a setting by Aeron's name: `driver_timeout_ms` of
    /// `aeron_context_set_driver_timeout_ms`.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            getter: None,
            renamed: None,
            summary: None,
            note: None,
            environment: None,
            ownership: None,
            form: Form::FromC,
            bytes: false,
        }
    }

    /// Sets the description, in Markdown, if the header has none or a wrong one.
    pub fn summary(mut self, markdown: impl Into<String>) -> Self {
        self.summary = Some(markdown.into());
        self
    }

    /// Adds a paragraph, in Markdown, below the description.
    pub fn note(mut self, markdown: impl Into<String>) -> Self {
        self.note = Some(markdown.into());
        self
    }

    /// Sets the environment variable of the default, if the header does not name it.
    pub fn environment(mut self, variable: impl Into<String>) -> Self {
        self.environment = Some(variable.into());
        self
    }

    /// Sets the name of the getter (without prefix and `get_`), if it differs from the setter's.
    pub fn getter(mut self, name: impl Into<String>) -> Self {
        self.getter = Some(name.into());
        self
    }

    /// Sets the name of the methods, in place of Aeron's.
    pub fn rename(mut self, name: impl Into<String>) -> Self {
        self.renamed = Some(name.into());
        self
    }

    /// Returns the name of the methods, before a unit of time is removed.
    pub(crate) fn rust_name(&self) -> &str {
        self.renamed.as_deref().unwrap_or(&self.name)
    }

    /// States that Aeron copies the string before the setter returns.
    pub fn copied(mut self) -> Self {
        self.ownership = Some(Ownership::Copied);
        self
    }

    /// States that Aeron retains the pointer. The context retains the string until it is dropped,
    /// with `fn retain(&mut self, value: CString) -> *const c_char`.
    pub fn retained(mut self) -> Self {
        self.ownership = Some(Ownership::Retained);
        self
    }

    /// States that the string is a path: `impl AsRef<Path>` in, `&Path` out.
    pub fn path(mut self) -> Self {
        self.form = Form::Path;
        self
    }

    /// States that the string is one of a fixed set, because Aeron would look up any other name
    /// with `dlsym` and call the result. `rust_type` is the path of a type with `fn as_c_str(&self)
    /// -> &CStr` and `fn from_c_str(&CStr) -> Option<Self>`. The getter returns an `Option` of the
    /// type.
    pub fn choice(mut self, rust_type: impl Into<String>) -> Self {
        self.form = Form::Choice(rust_type.into());
        self
    }

    /// States that the duration may be absent, which C writes as -1: `Option<Duration>` in and out.
    pub fn optional(mut self) -> Self {
        self.form = Form::Optional;
        self
    }

    /// States that the number counts bytes, although neither its name nor the header says so.
    pub fn bytes(mut self) -> Self {
        self.bytes = true;
        self
    }
}

/// The conversion of one setting between Rust and C.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mapping {
    Bool,
    Integer(&'static str),
    Duration(TimeUnit),
    OptionalDuration(TimeUnit),
    Text,
    Path,
    Choice(String),
    Enum { rust_name: String, first_variant: String },
}

impl Mapping {
    /// Returns the kind of the setter's parameter and the getter's result, for a [round
    /// trip](crate::Generator::generate_round_trips).
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Path => "path",
            Self::Choice(_) => "choice",
            _ => "value",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeUnit {
    Nanos,
    Millis,
}

impl TimeUnit {
    /// Splits a setting's name into the unit that it ends in, and the name without the unit.
    pub(crate) fn of(name: &str) -> Option<(Self, &str)> {
        let nanos = name.strip_suffix("_ns").map(|base| (Self::Nanos, base));
        nanos.or_else(|| name.strip_suffix("_ms").map(|base| (Self::Millis, base)))
    }

    /// Returns the name of the support function that converts a `Duration`.
    pub(crate) fn function(self) -> &'static str {
        match self {
            Self::Nanos => "nanos",
            Self::Millis => "millis",
        }
    }

    pub(crate) fn line(self) -> &'static str {
        match self {
            Self::Nanos => "Resolution: nanoseconds.",
            Self::Millis => "Resolution: milliseconds; a fraction of one is rounded up.",
        }
    }
}

/// Returns the conversion of a value of C type `ty`. The error is a reason to write the function by
/// hand.
pub(crate) fn mapping(
    ty: &CType,
    setting: &Setting,
    bindings: &Bindings,
    enums: &[EnumSpec],
) -> Result<Mapping, String> {
    let unit = TimeUnit::of(&setting.name).map(|(unit, _)| unit);
    let resolved = bindings.resolve(ty);
    match (&resolved, &setting.form) {
        (CType::Text, Form::FromC) => Ok(Mapping::Text),
        (CType::Text, Form::Path) => Ok(Mapping::Path),
        (CType::Text, Form::Choice(path)) => Ok(Mapping::Choice(path.clone())),
        (CType::Integer("u64" | "i64"), Form::Optional) if unit.is_some() => {
            Ok(Mapping::OptionalDuration(unit.unwrap_or(TimeUnit::Nanos)))
        }
        (_, Form::Path | Form::Choice(_)) => Err("it is not a string".into()),
        (_, Form::Optional) => Err("it is not a duration".into()),
        (CType::Bool, _) => Ok(Mapping::Bool),
        (CType::Integer(name @ ("u64" | "i64")), _) => {
            Ok(unit.map_or(Mapping::Integer(name), Mapping::Duration))
        }
        (CType::Integer(name), _) => Ok(Mapping::Integer(name)),
        (CType::Named(name), _) if !bindings.enum_values(name).is_empty() => enums
            .iter()
            .find(|spec| spec.resolved_name(bindings) == *name)
            .map(|spec| Mapping::Enum {
                rust_name: spec.rust_name.clone(),
                first_variant: spec.first_variant(bindings),
            })
            .ok_or_else(|| format!("no EnumSpec for {name}")),
        _ => Err(describe(&resolved)),
    }
}

/// Describes a C type in words, for errors.
pub(crate) fn describe(ty: &CType) -> String {
    match ty {
        CType::Void => "nothing".into(),
        CType::Bool => "bool".into(),
        CType::Integer(name) => (*name).into(),
        CType::Int => "int".into(),
        CType::Text => "a string".into(),
        CType::Pointer(target) => format!("a pointer to {target}"),
        CType::Callback => "a function pointer".into(),
        CType::Named(name) => name.clone(),
        CType::Other => "a type the generator does not know".into(),
    }
}
