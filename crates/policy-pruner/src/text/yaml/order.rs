//! The order of keys.
use std::cmp::Ordering;

/// Letters after everything else, runs of digits by their value.
pub(super) fn natural(a: &str, b: &str) -> Ordering {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    for i in 0..a.len().min(b.len()) {
        if a[i] == b[i] {
            continue;
        }
        let (x, y) = (a[i].is_alphabetic(), b[i].is_alphabetic());
        if x && y {
            return a[i].cmp(&b[i]);
        }
        if x || y {
            return if y { Ordering::Less } else { Ordering::Greater };
        }
        // A zero inside a number counts as a digit, at its start it does not.
        let mut carry = 0_u64;
        if a[i] == '0' || b[i] == '0' {
            let inside = a[..i].iter().rev().take_while(|c| c.is_ascii_digit()).any(|c| *c != '0');
            carry = u64::from(inside);
        }
        let run = |chars: &[char]| {
            let digits = chars[i..].iter().take_while(|c| c.is_ascii_digit());
            digits.fold((carry, 0_usize), |(value, length), c| {
                (value.wrapping_mul(10).wrapping_add(u64::from(c.to_digit(10).unwrap_or(0))), length + 1)
            })
        };
        let ((an, ai), (bn, bi)) = (run(&a), run(&b));
        return an.cmp(&bn).then(ai.cmp(&bi)).then(a[i].cmp(&b[i]));
    }
    a.len().cmp(&b.len())
}
