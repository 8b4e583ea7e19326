//! From Aeron's names to Rust's.

/// Strict and reserved keywords of the 2024 edition, and the names for which even `r#` is not
/// allowed.
const KEYWORDS: &[&str] = &[
    "Self", "abstract", "as", "async", "await", "become", "box", "break", "const", "continue",
    "crate", "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if",
    "impl", "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub",
    "ref", "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Returns a C name as a Rust identifier. Keywords get a trailing underscore.
pub(crate) fn identifier(name: &str) -> String {
    if KEYWORDS.contains(&name) { format!("{name}_") } else { name.to_owned() }
}

/// Returns enum constants without their common prefix, in camel case: `AERON_MODE_SHARED_NETWORK`
/// next to `AERON_MODE_SHARED` becomes `SharedNetwork`.
pub(crate) fn variants(constants: &[&str]) -> Vec<String> {
    let prefix = common_prefix(constants);
    constants.iter().map(|constant| identifier(&camel_case(&constant[prefix..]))).collect()
}

/// Returns the length of the common prefix of whole words. At least one word of each name remains.
fn common_prefix(names: &[&str]) -> usize {
    let Some(first) = names.first() else { return 0 };
    let ends = first.match_indices('_').map(|(at, _)| at + 1);
    ends.take_while(|&end| {
        names.iter().all(|name| name.len() > end && name.starts_with(&first[..end]))
    })
    // A variant cannot start with a digit. The prefix has to be short enough for that.
    .filter(|&end| names.iter().all(|name| !name.as_bytes()[end].is_ascii_digit()))
    .last()
    .unwrap_or(0)
}

fn camel_case(name: &str) -> String {
    let mut camel = String::with_capacity(name.len());
    for word in name.split('_') {
        let mut characters = word.chars();
        camel.extend(characters.next().map(|first| first.to_ascii_uppercase()));
        camel.extend(characters.map(|other| other.to_ascii_lowercase()));
    }
    camel
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_get_an_underscore() {
        assert_eq!(identifier("type"), "type_");
        assert_eq!(identifier("dir"), "dir");
    }

    #[test]
    fn shared_prefix_is_dropped_at_word_borders() {
        let modes = ["AERON_THREADING_MODE_SHARED", "AERON_THREADING_MODE_SHARED_NETWORK"];
        assert_eq!(variants(&modes), ["Shared", "SharedNetwork"]);
        assert_eq!(
            variants(&["AERON_FORCE_FALSE", "AERON_FORCE_TRUE", "AERON_INFER"]),
            ["ForceFalse", "ForceTrue", "Infer"]
        );
    }

    #[test]
    fn every_variant_keeps_a_word() {
        assert_eq!(variants(&["A_ON", "A_ON_DEMAND"]), ["On", "OnDemand"]);
        assert_eq!(variants(&["AERON_ONLY"]), ["Only"]);
        assert_eq!(variants(&["IP_4", "IP_6"]), ["Ip4", "Ip6"]);
    }
}
