//! The name that a misspelled name probably stands for.

/// Returns the known name that `name` is probably a misspelling of.
///
/// Case and the separators `-`, `_` and `.` do not count. A wrong, missing or additional letter is
/// one fault, and so are two swapped letters. A longer name may have more faults. Names of less than
/// four letters may have none: short names of other programs would look like misspellings.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters = letters(name);
    let faults = |known: &str| strsim::osa_distance(&letters, &self::letters(known));
    let candidates = known.into_iter().map(|known| (faults(known), known));
    candidates
        .filter(|(faults, known)| *faults <= max_faults(self::letters(known).len()))
        .min_by_key(|(faults, _)| *faults)
        .map(|(_, known)| known)
}

fn max_faults(length: usize) -> usize {
    match length {
        0..4 => 0,
        4..10 => 1,
        10..18 => 2,
        18.. => 3,
    }
}

fn letters(name: &str) -> String {
    name.chars().filter(|c| !"-_.".contains(*c)).map(|c| c.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found() {
        let known =
            ["fc", "mtu", "eos", "tags", "linger", "term-length", "term-offset", "session-id"];
        for (name, nearest_name) in [
            ("term-lenght", Some("term-length")),
            ("term_length", Some("term-length")),
            ("TermLength", Some("term-length")),
            ("terms-lenght", Some("term-length")),
            ("linge", Some("linger")),
            ("lingerr", Some("linger")),
            ("MTU", Some("mtu")),
            ("tag", Some("tags")),
            ("mtw", None),
            ("dc", None),
            ("colour", None),
            ("length", None),
            ("session", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, known), nearest_name, "{name}");
        }
    }

    #[test]
    fn nearest_of_several_is_found() {
        assert_eq!(nearest("abcde", ["abcdx", "abcde"]), Some("abcde"));
        assert_eq!(nearest("term-lengths", ["term-lengthen", "term-length"]), Some("term-length"));
    }
}
