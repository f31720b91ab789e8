//! Path patterns: `*` stands for any run of characters, everything else for itself.

/// Does the whole text fit the pattern?
pub fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn a_star_stands_for_anything_and_the_rest_for_itself() {
        for (pattern, text, expected) in [
            ("/v1/disks", "/v1/disks", true),
            ("/v1/disks", "/v1/disks/1", false),
            ("/v1/*/tags", "/v1/disks/1/tags", true),
            ("/v1/*/tags", "/v1/disks/1", false),
            ("*", "", true),
            ("a*b*a", "aba", true),
            ("a*a", "a", false),
            ("*x*", "axb", true),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} on {text}");
        }
    }
}
