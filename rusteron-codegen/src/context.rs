//! Setters and getters of a context.

use std::collections::BTreeMap;

use crate::bindings::{Bindings, CType, Function};
use crate::defaults::{Defaults, Values};
use crate::doc;
use crate::enumeration::EnumSpec;
use crate::header::Comments;
use crate::name;
use crate::setting::{self, Form, Mapping, Ownership, Setting, TimeUnit};
use crate::template::{Access, Method};

/// A context: the family of C functions that share a prefix.
///
/// Every function `<prefix>_set_<name>` and `<prefix>_get_<name>` becomes a method. Every other
/// function of the family must be declared as [written by hand](Self::hand_written).
#[derive(Debug, Clone)]
pub struct ContextSpec {
    rust_name: String,
    prefix: String,
    raw: String,
    support: String,
    settings: Vec<Setting>,
    hand_written: Vec<(String, String)>,
    is_debug: bool,
}

impl ContextSpec {
    /// Takes the Rust type that gets the methods, and the prefix of the C functions without the
    /// last underscore (`aeron_context`; the C type is the prefix and `_t`). `raw` and `support`
    /// are the paths of the bindings and of the support module in the including crate.
    pub fn new(
        rust_name: impl Into<String>,
        prefix: impl Into<String>,
        raw: impl Into<String>,
        support: impl Into<String>,
    ) -> Self {
        Self {
            rust_name: rust_name.into(),
            prefix: prefix.into(),
            raw: raw.into(),
            support: support.into(),
            settings: Vec::new(),
            hand_written: Vec::new(),
            is_debug: false,
        }
    }

    /// Adds facts about a setting that bindings and headers do not have.
    pub fn setting(mut self, setting: Setting) -> Self {
        self.settings.push(setting);
        self
    }

    /// Leaves a C function out. `item_or_reason` names the Rust item that reaches the function, or
    /// the reason why there is none. It is for readers of the spec; the including crate's
    /// [coverage test](crate::coverage_problems) proves it.
    pub fn hand_written(
        mut self,
        function: impl Into<String>,
        item_or_reason: impl Into<String>,
    ) -> Self {
        self.hand_written.push((function.into(), item_or_reason.into()));
        self
    }

    /// Implements `Debug` for the Rust type as well, with every readable setting.
    pub fn debug(mut self) -> Self {
        self.is_debug = true;
        self
    }

    /// Returns the `impl` block. Adds missing and unknown names to `problems`.
    pub(crate) fn generate(
        &self,
        bindings: &Bindings,
        texts: (&Comments, &Defaults),
        enums: &[EnumSpec],
        wrapped: &mut Vec<Wrapped>,
        problems: &mut Vec<String>,
    ) -> String {
        let found = problems.len();
        self.check_hand_written(bindings, problems);
        let pairs = self.pairs(bindings, problems);
        self.check_settings(&pairs, problems);
        let mut accessors = Vec::new();
        let mut missing = Vec::new();
        for pair in &pairs {
            self.map(pair, bindings, enums, &mut accessors, &mut missing, problems);
        }
        if !missing.is_empty() {
            problems.push(format!(
                "{}: these functions cannot be generated; declare them as hand_written:\n  {}",
                self.rust_name,
                missing.join("\n  ")
            ));
        }
        name_methods(&self.rust_name, &mut accessors, problems);
        let mut methods = Vec::new();
        for accessor in &accessors {
            match self.describe(accessor, texts) {
                Some(docs) => methods.push(accessor.method(self, docs)),
                None => problems.push(format!(
                    "{}: neither header nor spec describes {}",
                    self.rust_name, accessor.pair.setting.name
                )),
            }
        }
        // A setting without a description is reported once, and not for each method.
        let mut seen = Vec::new();
        problems.retain(|problem| {
            let new = !seen.contains(problem);
            seen.push(problem.clone());
            new
        });
        if problems.len() > found {
            return String::new();
        }
        for accessor in &accessors {
            let setter = accessor.access == Access::Set;
            let getter = accessors.iter().find(|other| {
                let is_same = std::ptr::eq(other.pair, accessor.pair);
                setter && is_same && other.access == Access::Get
            });
            let round_trip = getter.map(|getter| RoundTrip {
                setter: accessor.rust_name.clone(),
                getter: getter.rust_name.clone(),
                kind: accessor.mapping.kind(),
            });
            wrapped.push(Wrapped { function: accessor.function.name.clone(), round_trip });
        }
        let methods: Vec<_> = methods.iter().map(Method::render).collect();
        let mut out = format!("impl {} {{\n{}}}\n\n", self.rust_name, methods.join("\n"));
        if self.is_debug {
            out += &self.debug_impl(&accessors);
        }
        out
    }

    fn debug_impl(&self, accessors: &[Accessor<'_>]) -> String {
        let Self { rust_name, .. } = self;
        let fields: String = accessors
            .iter()
            .filter(|accessor| accessor.access == Access::Get)
            .map(|accessor| {
                let name = &accessor.rust_name;
                format!("            .field({name:?}, &self.{name}())\n")
            })
            .collect();
        format!(
            "/// All settings: with `{{:#?}}`, a line for each.\n\
             impl ::core::fmt::Debug for {rust_name} {{\n    \
             fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {{\n        \
             f.debug_struct({rust_name:?})\n{fields}            .finish_non_exhaustive()\n    }}\n}}\n\n"
        )
    }

    fn check_hand_written(&self, bindings: &Bindings, problems: &mut Vec<String>) {
        for (index, (name, _)) in self.hand_written.iter().enumerate() {
            if bindings.function(name).is_none() {
                problems.push(format!(
                    "{}: {name} is declared as hand_written, but the bindings do not have it",
                    self.rust_name
                ));
            }
            if self.hand_written[..index].iter().any(|(other, _)| other == name) {
                problems.push(format!("{}: {name} is declared twice", self.rust_name));
            }
        }
    }

    /// Returns every function of the family that is not written by hand, by setting.
    fn pairs<'a>(&self, bindings: &'a Bindings, problems: &mut Vec<String>) -> Vec<Pair<'a>> {
        let family = format!("{}_", self.prefix);
        let mut pairs: Vec<Pair<'a>> = Vec::new();
        let mut size = 0;
        for function in &bindings.functions {
            let Some(rest) = function.name.strip_prefix(&family) else { continue };
            size += 1;
            if self.hand_written.iter().any(|(name, _)| *name == function.name) {
                continue;
            }
            let access = [("set_", Access::Set), ("get_", Access::Get)]
                .into_iter()
                .find_map(|(verb, access)| Some((rest.strip_prefix(verb)?, access)));
            let (name, access) = access.unwrap_or((rest, Access::Other));
            let setting = self.setting_of(name, access);
            let pair = match pairs.iter().position(|pair| pair.setting.name == setting.name) {
                Some(at) => &mut pairs[at],
                None => {
                    pairs.push(Pair { setting, functions: Vec::new() });
                    pairs.last_mut().expect("just pushed")
                }
            };
            pair.functions.push((access, function));
        }
        if size == 0 {
            problems.push(format!("{}: the bindings have no {family}*", self.rust_name));
        }
        pairs
    }

    /// Returns the spec's entry for a setting, found by the setter's or the getter's name.
    fn setting_of(&self, name: &str, access: Access) -> Setting {
        let of_getter =
            |setting: &&Setting| access == Access::Get && setting.getter.as_deref() == Some(name);
        let declared = self.settings.iter().find(of_getter);
        let declared = declared.or_else(|| self.settings.iter().find(|s| s.name == name));
        declared.cloned().unwrap_or_else(|| Setting::new(name))
    }

    fn check_settings(&self, pairs: &[Pair<'_>], problems: &mut Vec<String>) {
        let Self { rust_name, prefix, .. } = self;
        for (index, setting) in self.settings.iter().enumerate() {
            let name = &setting.name;
            let Some(pair) = pairs.iter().find(|pair| pair.setting.name == *name) else {
                problems.push(format!("{rust_name}: there is no setting {name} to generate"));
                continue;
            };
            if self.settings[..index].iter().any(|other| other.name == *name) {
                problems.push(format!("{rust_name}: setting {name} is described twice"));
            }
            if let Some(getter) = &setting.getter {
                let c_name = format!("{prefix}_get_{getter}");
                if !pair.functions.iter().any(|(_, function)| function.name == c_name) {
                    problems.push(format!("{rust_name}: there is no {c_name} to generate"));
                }
            }
        }
    }

    /// Finds the Rust types of one setting's functions.
    fn map<'a>(
        &self,
        pair: &'a Pair<'a>,
        bindings: &Bindings,
        enums: &[EnumSpec],
        accessors: &mut Vec<Accessor<'a>>,
        missing: &mut Vec<String>,
        problems: &mut Vec<String>,
    ) {
        let context = CType::Pointer(format!("{}_t", self.prefix));
        let mut mapped = Vec::new();
        for (access, function) in &pair.functions {
            let ty = match (access, function.parameters.as_slice()) {
                (Access::Set, [first, value]) if *first == context => Ok(value),
                (Access::Get, [first]) if *first == context => Ok(&function.output),
                (Access::Other, _) => Err("it is neither setter nor getter".to_owned()),
                _ => Err("its parameters are not those of a setter or getter".to_owned()),
            };
            let ty = ty.and_then(|ty| {
                let returns_code = matches!(function.output, CType::Int | CType::Integer("i64"));
                match access {
                    Access::Set if !returns_code => Err("it returns no code".to_owned()),
                    _ => Ok(ty),
                }
            });
            // Some getters of Aeron return a truth value as an int.
            let mapping = ty.and_then(|ty| match ty {
                CType::Int if *access == Access::Get && pair.is_set_with_bool(bindings) => {
                    Ok(Mapping::Bool)
                }
                ty => setting::mapping(ty, &pair.setting, bindings, enums),
            });
            match mapping {
                Ok(mapping) => mapped.push((*access, *function, mapping)),
                Err(reason) => missing.push(format!("{} ({reason})", function.name)),
            }
        }
        if let [(_, _, one), (_, _, other)] = mapped.as_slice() {
            if one != other {
                problems.push(format!(
                    "{}: {} is set as one type and read as another; write one by hand",
                    self.rust_name, pair.setting.name
                ));
            }
        }
        for (access, function, mapping) in mapped {
            let is_text = matches!(mapping, Mapping::Text | Mapping::Path);
            if access == Access::Set && is_text && pair.setting.ownership.is_none() {
                problems.push(format!(
                    "{}: {} takes a string; read Aeron's source and say in its Setting whether \
                     the string is copied() or retained()",
                    self.rust_name, function.name
                ));
            }
            // The setter writes -1 as the largest number that fits.
            let is_unsigned = function.parameters.get(1) == Some(&CType::Integer("u64"));
            if access == Access::Set && pair.setting.form == Form::Optional && !is_unsigned {
                problems.push(format!(
                    "{}: {} is signed, and optional durations are not; write it by hand",
                    self.rust_name, function.name
                ));
            }
            let rust_name = String::new();
            accessors.push(Accessor { access, function, mapping, pair, rust_name });
        }
    }

    /// Returns the doc comment of a method, in Markdown. `None` without a description.
    fn describe(
        &self,
        accessor: &Accessor<'_>,
        (comments, defaults): (&Comments, &Defaults),
    ) -> Option<String> {
        let setting = &accessor.pair.setting;
        // The setter stands first in the headers, so the comment is the setter's.
        let mut environment = setting.environment.clone();
        let mut description = setting.summary.clone();
        for (_, function) in &accessor.pair.functions {
            let comment = comments.function(&function.name);
            environment = environment.or(comment.environment);
            description = description.or_else(|| {
                let text = doc::neutral(&doc::markdown(&comment.text?));
                let is_time = matches!(accessor.mapping, Mapping::Duration(_));
                Some(if is_time { doc::without_time_unit(&text) } else { text })
            });
        }
        let mut blocks = vec![description.filter(|text| !text.is_empty())?];
        blocks.extend(setting.note.clone());
        blocks.extend(accessor.unit(&blocks[0]).map(str::to_owned));
        blocks.extend(accessor.reading().map(str::to_owned));
        if let Some(name) = environment {
            let values = defaults.of(&name);
            // Some descriptions already state the default and its consequences.
            let is_said = ["default is", "the default", "by default"]
                .iter()
                .any(|phrase| blocks[0].contains(phrase));
            let default = values.default.filter(|_| !is_said);
            blocks.extend(default.map(|value| format!("Default: {}.", accessor.write(value))));
            blocks.push(format!("Environment: `{name}`{}.", accessor.limits(values)));
        }
        if let Some(errors) = accessor.errors() {
            blocks.push(format!("# Errors\n\n{errors}"));
        }
        blocks.push(format!("Corresponds to `{}`.", accessor.function.name));
        Some(blocks.join("\n\n"))
    }
}

/// A C function that a generated method wraps.
#[derive(Debug)]
pub(crate) struct Wrapped {
    pub(crate) function: String,
    /// Set for a setter whose setting has a getter as well.
    pub(crate) round_trip: Option<RoundTrip>,
}

/// The two methods of a setting, and how the setter's type differs from the getter's.
#[derive(Debug)]
pub(crate) struct RoundTrip {
    pub(crate) setter: String,
    pub(crate) getter: String,
    pub(crate) kind: &'static str,
}

/// A setting with its setter, its getter, or both.
struct Pair<'a> {
    setting: Setting,
    functions: Vec<(Access, &'a Function)>,
}

impl Pair<'_> {
    fn is_set_with_bool(&self, bindings: &Bindings) -> bool {
        self.functions.iter().any(|(access, function)| {
            let value = function.parameters.get(1).map(|ty| bindings.resolve(ty));
            *access == Access::Set && value == Some(CType::Bool)
        })
    }
}

/// A C function with all data for its method.
struct Accessor<'a> {
    access: Access,
    function: &'a Function,
    mapping: Mapping,
    pair: &'a Pair<'a>,
    rust_name: String,
}

impl Accessor<'_> {
    fn method(&self, spec: &ContextSpec, docs: String) -> Method {
        Method {
            docs,
            access: self.access,
            rust_name: self.rust_name.clone(),
            setting: self.pair.setting.rust_name().to_owned(),
            function: format!("{}::{}", spec.raw, self.function.name),
            support: spec.support.clone(),
            mapping: self.mapping.clone(),
            is_retained: self.pair.setting.ownership == Some(Ownership::Retained),
            parameter: self.function.parameters.get(1).cloned().unwrap_or(CType::Void),
            output: self.function.output.clone(),
        }
    }

    fn unit(&self, description: &str) -> Option<&'static str> {
        match self.mapping {
            Mapping::Duration(unit) | Mapping::OptionalDuration(unit) => Some(unit.line()),
            Mapping::Integer("usize" | "u64" | "i64")
                if self.is_in_bytes() || description.contains("bytes") =>
            {
                Some("Unit: bytes.")
            }
            _ => None,
        }
    }

    fn is_in_bytes(&self) -> bool {
        let name = &self.pair.setting.name;
        let says_so = self.pair.setting.bytes
            || ["_length", "_rcvbuf", "_sndbuf"].iter().any(|ending| name.ends_with(ending));
        says_so && matches!(self.mapping, Mapping::Integer("usize" | "u64" | "i64"))
    }

    /// Formats a value of the setting for readers.
    fn write(&self, value: i128) -> String {
        let in_largest = |units: &[(&str, i128)]| {
            let unit = units.iter().find(|(_, size)| value != 0 && value % size == 0);
            unit.map_or_else(|| "0".to_owned(), |(unit, size)| format!("{} {unit}", value / size))
        };
        match self.mapping {
            Mapping::Bool => format!("`{}`", value != 0),
            Mapping::Duration(unit) | Mapping::OptionalDuration(unit) => {
                let nanos = [("s", 1_000_000_000), ("ms", 1_000_000), ("µs", 1_000), ("ns", 1)];
                let millis = [("s", 1_000), ("ms", 1)];
                in_largest(if unit == TimeUnit::Nanos { &nanos } else { &millis })
            }
            _ if self.is_in_bytes() => {
                in_largest(&[("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("bytes", 1)])
            }
            _ => value.to_string(),
        }
    }

    /// Describes how Aeron treats values of the environment variable that are out of range. The
    /// largest numbers of C's types are no limits.
    fn limits(&self, values: Values) -> String {
        let is_limit = |value: &i128| {
            let unlimited = [i32::MIN.into(), i32::MAX.into(), i64::MIN.into(), i64::MAX.into()];
            !unlimited.contains(value)
        };
        // Zero is the minimum of unsigned types.
        let is_signed = matches!(self.mapping, Mapping::Integer("i32" | "i64"));
        let least = values.least.filter(is_limit).filter(|least| is_signed || *least != 0);
        let most = values.most.filter(is_limit);
        match (least.map(|least| self.write(least)), most.map(|most| self.write(most))) {
            (Some(least), Some(most)) => format!(", cut to {least} to {most}"),
            (Some(least), None) => format!(", cut to at least {least}"),
            (None, Some(most)) => format!(", cut to at most {most}"),
            (None, None) => String::new(),
        }
    }

    fn reading(&self) -> Option<&'static str> {
        match (self.access, &self.mapping) {
            (Access::Get, Mapping::Text) => {
                Some("Empty when it is not set; what is not UTF-8 is replaced.")
            }
            (Access::Get, Mapping::Path) => Some("Empty when it is not set."),
            (Access::Get, Mapping::Choice(_)) => {
                Some("`None` when Aeron has none of the choices, as after a setter that failed.")
            }
            (_, Mapping::OptionalDuration(_)) => Some("`None` means that it is not set."),
            _ => None,
        }
    }

    fn errors(&self) -> Option<&'static str> {
        if self.access != Access::Set {
            return None;
        }
        Some(match self.mapping {
            Mapping::Text => "If `value` contains a NUL, or Aeron refuses it.",
            Mapping::Path => {
                "If `value` is empty, contains a NUL or is longer than Aeron can hold."
            }
            Mapping::Duration(_) | Mapping::OptionalDuration(_) => {
                "If `value` is too long for C's integer, or Aeron refuses it."
            }
            _ => "If Aeron refuses `value`.",
        })
    }
}

/// Gives every accessor its Rust name. A `Duration` needs no unit in its name, unless two settings
/// would then share a name.
fn name_methods(context: &str, accessors: &mut [Accessor<'_>], problems: &mut Vec<String>) {
    let short_name = |accessor: &Accessor<'_>| {
        let name = accessor.pair.setting.rust_name();
        match (&accessor.mapping, TimeUnit::of(name)) {
            (Mapping::Duration(_) | Mapping::OptionalDuration(_), Some((_, short))) => {
                short.to_owned()
            }
            _ => name.to_owned(),
        }
    };
    let mut users: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for accessor in accessors.iter() {
        let settings = users.entry(short_name(accessor)).or_default();
        if !settings.contains(&accessor.pair.setting.name) {
            settings.push(accessor.pair.setting.name.clone());
        }
    }
    let mut methods: BTreeMap<String, String> = BTreeMap::new();
    for accessor in accessors.iter_mut() {
        let short = short_name(accessor);
        let is_shared = users[&short].len() > 1;
        let name = if is_shared { accessor.pair.setting.rust_name().to_owned() } else { short };
        accessor.rust_name = match accessor.access {
            Access::Set => format!("set_{name}"),
            _ => name::identifier(&name),
        };
        let c_name = accessor.function.name.clone();
        if let Some(other) = methods.insert(accessor.rust_name.clone(), c_name.clone()) {
            problems.push(format!(
                "{context}: {other} and {c_name} would both be {}",
                accessor.rust_name
            ));
        }
    }
}
