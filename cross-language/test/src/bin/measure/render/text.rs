//! Names and numbers in tables.

pub(super) fn name(language: &str) -> String {
    let (first, rest) = language.split_at(1);
    format!("{}{rest}", first.to_uppercase())
}

/// The language of a caller: `java` of `java-jni`.
pub(super) fn language_of(caller: &str) -> &str {
    caller.split('-').next().unwrap_or(caller)
}

pub(super) fn pair_name((caller, server): (&str, &str)) -> String {
    format!("{} → {}", name(caller), name(server))
}

pub(super) fn payload_name(payload: u32) -> String {
    match payload {
        0 => "`ping`".to_owned(),
        bytes => format!("{bytes} B"),
    }
}

pub(super) fn number(value: Option<f64>) -> String {
    match value {
        None => "–".to_owned(),
        Some(value) if value >= 100.0 => format!("{value:.0}"),
        Some(value) if value >= 10.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.2}"),
    }
}

pub(super) fn thousands(value: Option<f64>) -> String {
    number(value.map(|value| value / 1e3))
}

pub(super) fn ratio(of: Option<f64>, to: Option<f64>) -> String {
    match of.zip(to) {
        Some((of, to)) if to > 0.0 => format!("{:.1}", of / to),
        _ => "–".to_owned(),
    }
}
