//! Shell patterns of namespace selectors: `*`, `?`, `[a-z]`, `[^a-z]`, `\`. None of them matches a slash.

/// The pattern makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("syntax error in pattern")]
pub struct BadPattern;

/// Does the whole name match? A malformed pattern is an error only where matching gets that far, and always at its end.
pub fn matches(pattern: &str, name: &str) -> Result<bool, BadPattern> {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    check(&pattern)?;
    step(&pattern, &name)
}

/// The whole pattern is read once, so that an error does not depend on the names of a cluster.
fn check(pattern: &[char]) -> Result<(), BadPattern> {
    let mut rest = pattern;
    while let Some((first, after)) = rest.split_first() {
        rest = match first {
            '[' => class(after, '\0')?.1,
            '\\' => after.get(1..).ok_or(BadPattern)?,
            _ => after,
        };
    }
    Ok(())
}

fn step(pattern: &[char], name: &[char]) -> Result<bool, BadPattern> {
    // The last star and what the name was there: a star takes one more character when the rest does not fit.
    let (mut p, mut n) = (pattern, name);
    let mut star: Option<(&[char], &[char])> = None;
    loop {
        if let Some(('*', after)) = p.split_first() {
            p = after;
            star = Some((after, n));
            continue;
        }
        let fits = match (p.split_first(), n.split_first()) {
            (None, None) => return Ok(true),
            (Some((first, after)), Some((c, name_rest))) => single(*first, after, *c)?.map(|rest| (rest, name_rest)),
            _ => None,
        };
        if let Some((rest, name_rest)) = fits {
            (p, n) = (rest, name_rest);
            continue;
        }
        match star {
            Some((after, at)) => match at.split_first() {
                Some((c, rest)) if *c != '/' => {
                    star = Some((after, rest));
                    (p, n) = (after, rest);
                }
                _ => return Ok(false),
            },
            None => return Ok(false),
        }
    }
}

/// One element of the pattern against one character: what is left of the pattern if it fits.
fn single(first: char, after: &[char], c: char) -> Result<Option<&[char]>, BadPattern> {
    match first {
        '?' => Ok((c != '/').then_some(after)),
        '[' => {
            let (hit, rest) = class(after, c)?;
            Ok(hit.then_some(rest))
        }
        '\\' => {
            let (escaped, rest) = after.split_first().ok_or(BadPattern)?;
            Ok((*escaped == c).then_some(rest))
        }
        other => Ok((other == c).then_some(after)),
    }
}

/// A character class behind its bracket: does it hold `c`, and what follows it.
fn class(inside: &[char], c: char) -> Result<(bool, &[char]), BadPattern> {
    let (negated, mut rest) = match inside.split_first() {
        Some(('^', after)) => (true, after),
        _ => (false, inside),
    };
    let (mut hit, mut ranges) = (false, 0);
    loop {
        if let Some((']', after)) = rest.split_first()
            && ranges > 0
        {
            return Ok((hit != negated, after));
        }
        let (low, after) = class_char(rest)?;
        rest = after;
        let mut high = low;
        if let Some(('-', after)) = rest.split_first() {
            (high, rest) = class_char(after)?;
        }
        hit |= low <= c && c <= high;
        ranges += 1;
    }
}
fn class_char(rest: &[char]) -> Result<(char, &[char]), BadPattern> {
    match rest.split_first() {
        None | Some(('-' | ']', _)) => Err(BadPattern),
        Some(('\\', after)) => {
            let (escaped, rest) = after.split_first().ok_or(BadPattern)?;
            if rest.is_empty() { Err(BadPattern) } else { Ok((*escaped, rest)) }
        }
        Some((c, after)) => {
            if after.is_empty() {
                return Err(BadPattern);
            }
            Ok((*c, after))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            ("default", "default", true),
            ("default", "defaults", false),
            ("kube-*", "kube-system", true),
            ("kube-*", "kube", false),
            ("*", "anything", true),
            ("*", "a/b", false),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("case-?", "case-1", true),
            ("case-?", "case-12", false),
            ("case-[1-3]", "case-2", true),
            ("case-[1-3]", "case-4", false),
            ("case-[^1-3]", "case-4", true),
            ("a\\*", "a*", true),
            ("a\\*", "ab", false),
            ("", "", true),
            ("**x", "yx", true),
        ] {
            assert_eq!(matches(pattern, name), Ok(expected), "{pattern} {name}");
        }
    }
    #[test]
    fn malformed_patterns_are_errors_for_every_name() {
        for pattern in ["[", "[a", "[]a]", "[-]", "a[", "[a-", "a\\", "kube-[*"] {
            assert_eq!(matches(pattern, "zzz"), Err(BadPattern), "{pattern}");
        }
    }
}
