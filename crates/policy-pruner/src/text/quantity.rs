//! Quantities of Kubernetes: `1Gi`, `500m`, `1e3`. Two texts may mean the same amount.

/// An amount in one normal form: `odd * 2^twos * 5^fives`, so that equal amounts are equal values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity {
    negative: bool,
    odd: u128,
    twos: i32,
    fives: i32,
}

/// More digits than this are no quantity anybody writes.
const MOST_DIGITS: usize = 38;

impl Quantity {
    /// Reads one; `None` if the text is something else.
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, rest) = match text.as_bytes().first()? {
            b'-' => (true, text.get(1..)?),
            b'+' => (false, text.get(1..)?),
            _ => (false, text),
        };
        let whole_end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (whole, rest) = rest.split_at(whole_end);
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(after) => after.split_at(after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len())),
            None => ("", rest),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let fraction = fraction.trim_end_matches('0');
        let digits = format!("{}{fraction}", whole.trim_start_matches('0'));
        if digits.len() > MOST_DIGITS {
            return None;
        }
        let mantissa: u128 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
        let (ten, two) = suffix_powers(suffix)?;
        let ten = ten.checked_sub(i32::try_from(fraction.len()).ok()?)?;
        Some(Self::normal(negative, mantissa, two.checked_add(ten)?, ten))
    }

    fn normal(negative: bool, mut odd: u128, mut twos: i32, mut fives: i32) -> Self {
        if odd == 0 {
            return Quantity { negative: false, odd: 0, twos: 0, fives: 0 };
        }
        while odd.is_multiple_of(2) {
            odd /= 2;
            twos = twos.saturating_add(1);
        }
        while odd.is_multiple_of(5) {
            odd /= 5;
            fives = fives.saturating_add(1);
        }
        Quantity { negative, odd, twos, fives }
    }
}

/// The power of ten and the power of two behind a number.
fn suffix_powers(suffix: &str) -> Option<(i32, i32)> {
    let known = match suffix {
        "" => (0, 0),
        "n" => (-9, 0),
        "u" => (-6, 0),
        "m" => (-3, 0),
        "k" => (3, 0),
        "M" => (6, 0),
        "G" => (9, 0),
        "T" => (12, 0),
        "P" => (15, 0),
        "E" => (18, 0),
        "Ki" => (0, 10),
        "Mi" => (0, 20),
        "Gi" => (0, 30),
        "Ti" => (0, 40),
        "Pi" => (0, 50),
        "Ei" => (0, 60),
        _ => {
            let power = suffix.strip_prefix(['e', 'E'])?;
            let digits = power.strip_prefix(['+', '-']).unwrap_or(power);
            if digits.is_empty() || digits.len() > 9 || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            (power.parse().ok()?, 0)
        }
    };
    Some(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_amounts_are_equal() {
        for (a, b) in [
            ("1024Mi", "1Gi"),
            ("080", "80"),
            ("1000m", "1"),
            ("1e3", "1k"),
            ("0.5", "500m"),
            ("1.50", "1500m"),
            ("-0", "0"),
            ("+5", "5"),
            ("5.", "5"),
            (".5Gi", "512Mi"),
            ("1E3", "1000"),
            ("1E", "1e18"),
        ] {
            assert_eq!(Quantity::parse(a), Quantity::parse(b), "{a} {b}");
            assert!(Quantity::parse(a).is_some(), "{a}");
        }
        for (a, b) in [("1Gi", "1G"), ("1", "-1"), ("100m", "1")] {
            assert_ne!(Quantity::parse(a), Quantity::parse(b), "{a} {b}");
        }
    }
    #[test]
    fn other_text_is_no_quantity() {
        for text in ["", "abc", "1.2.3", "1 Gi", "Gi", ".", "-", "1ki", "1e", "1e+", "0x10", "1Kib", "10%", "80/tcp"] {
            assert_eq!(Quantity::parse(text), None, "{text:?}");
        }
        assert_eq!(Quantity::parse(&"9".repeat(50)), None);
        assert_eq!(Quantity::parse("1e99999999999"), None);
    }
}
