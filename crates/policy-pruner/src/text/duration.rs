//! Durations as policies write them (`1h30m`, `250ms`), evaluation intervals, and the two time formats of the status.
use jiff::Timestamp;
use std::time::Duration;

/// How often a policy is evaluated in one of its two states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// When something it read changes.
    Watch,
    /// Not again.
    Never,
    /// After this time.
    Every(Duration),
    /// The text is no interval.
    Unreadable,
}
impl Interval {
    /// Reads one; empty means watch.
    pub fn parse(text: &str) -> Self {
        match text {
            "" | "watch" => Interval::Watch,
            "never" => Interval::Never,
            other => parse(other).map_or(Interval::Unreadable, Interval::Every),
        }
    }
}

/// Reads a duration: numbers with units, at least one.
pub fn parse(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest.is_empty() {
        return None;
    }
    let mut nanos: u128 = 0;
    while !rest.is_empty() {
        let whole_end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (whole, after) = rest.split_at(whole_end);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(tail) => tail.split_at(tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len())),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, tail) = after.split_at(unit_end);
        let scale: u128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        nanos = nanos.checked_add(whole.checked_mul(scale)?)?;
        let places = fraction.get(..fraction.len().min(9))?;
        if !places.is_empty() {
            let power = 10_u128.checked_pow(u32::try_from(places.len()).ok()?)?;
            nanos = nanos.checked_add(places.parse::<u128>().ok()?.checked_mul(scale)? / power)?;
        }
        rest = tail;
    }
    // The range of the peer's clock: 292 years.
    u64::try_from(nanos).ok().filter(|n| i64::try_from(*n).is_ok()).map(Duration::from_nanos)
}

/// `2026-11-16T08:00:00Z`: seconds, UTC.
pub fn seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
/// `2026-11-16T08:00:00.000001Z`: microseconds, UTC.
pub fn micros(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_written() {
        for (text, millis) in [
            ("1s", 1000),
            ("1h30m", 5_400_000),
            ("250ms", 250),
            ("1.5s", 1500),
            ("0s", 0),
            ("0", 0),
            ("2m0.5s", 120_500),
        ] {
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "1", "s", "1d", "-1s", "1s1", "99999999999999h", "1..5s", "+"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
    #[test]
    fn intervals_have_words_of_their_own() {
        assert_eq!(Interval::parse(""), Interval::Watch);
        assert_eq!(Interval::parse("watch"), Interval::Watch);
        assert_eq!(Interval::parse("never"), Interval::Never);
        assert_eq!(Interval::parse("10s"), Interval::Every(Duration::from_secs(10)));
        assert_eq!(Interval::parse("watchwatch"), Interval::Unreadable);
    }
    #[test]
    fn times_are_utc() {
        let at: Timestamp = "2026-11-16T08:00:00.1234567Z".parse().unwrap();
        assert_eq!(seconds(at), "2026-11-16T08:00:00Z");
        assert_eq!(micros(at), "2026-11-16T08:00:00.123456Z");
    }
}
