//! Bare words that a reader takes for something other than a string: booleans, numbers, dates.

/// Would a reader take the bare text for a string?
pub(super) fn is_plain_string(text: &str) -> bool {
    let word = matches!(
        text,
        "" | "~"
            | "null"
            | "Null"
            | "NULL"
            | "y"
            | "Y"
            | "yes"
            | "Yes"
            | "YES"
            | "true"
            | "True"
            | "TRUE"
            | "on"
            | "On"
            | "ON"
            | "n"
            | "N"
            | "no"
            | "No"
            | "NO"
            | "false"
            | "False"
            | "FALSE"
            | "off"
            | "Off"
            | "OFF"
            | "<<"
            | ".nan"
            | ".NaN"
            | ".NAN"
            | ".inf"
            | ".Inf"
            | ".INF"
            | "+.inf"
            | "+.Inf"
            | "+.INF"
            | "-.inf"
            | "-.Inf"
            | "-.INF"
    );
    !word && !is_number(text) && !is_base60(text) && !is_timestamp(text)
}

fn is_number(text: &str) -> bool {
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return false;
    }
    let plain = text.replace('_', "");
    let digits = plain.strip_prefix(['+', '-']).unwrap_or(&plain);
    let based = |prefix: [&str; 2], radix: u32| {
        let rest = prefix.iter().find_map(|p| digits.strip_prefix(p));
        rest.is_some_and(|rest| !rest.is_empty() && u64::from_str_radix(rest, radix).is_ok())
    };
    if based(["0x", "0X"], 16) || based(["0b", "0B"], 2) || based(["0o", "0O"], 8) {
        return true;
    }
    is_float(&plain)
}
fn is_float(text: &str) -> bool {
    let rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match rest.find(['e', 'E']) {
        Some(at) => (&rest[..at], Some(&rest[at + 1..])),
        None => (rest, None),
    };
    let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    let mantissa_ok = match mantissa.split_once('.') {
        Some(("", fraction)) => digits(fraction),
        Some((whole, fraction)) => digits(whole) && (fraction.is_empty() || digits(fraction)),
        None => digits(mantissa),
    };
    let exponent_ok = exponent.is_none_or(|e| digits(e.strip_prefix(['+', '-']).unwrap_or(e)));
    mantissa_ok && exponent_ok
}
/// `1:30:00` was a number once.
fn is_base60(text: &str) -> bool {
    let rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    let mut parts = rest.split(':');
    let first = parts.next().unwrap_or_default();
    let first_ok =
        first.starts_with(|c: char| c.is_ascii_digit()) && first.chars().all(|c| c.is_ascii_digit() || c == '_');
    let rest: Vec<&str> = parts.collect();
    let Some((last, middle)) = rest.split_last() else { return false };
    let sixty = |p: &str| matches!(p.len(), 1 | 2) && p.parse::<u8>().is_ok_and(|n| n < 60) && !p.starts_with('+');
    let last_ok = match last.split_once('.') {
        Some((whole, fraction)) => sixty(whole) && fraction.chars().all(|c| c.is_ascii_digit() || c == '_'),
        None => sixty(last),
    };
    first_ok && last_ok && middle.iter().all(|p| sixty(p))
}
/// `2026-11-16`, `2026-11-16T08:00:00Z`, `2026-11-16 08:00:00`.
fn is_timestamp(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() < 8 || !bytes[..4].iter().all(u8::is_ascii_digit) || bytes[4] != b'-' {
        return false;
    }
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], Some((&text[at + 1..], text.as_bytes()[at] == b' '))),
        None => (text, None),
    };
    let number = |t: &str, most: u32| matches!(t.len(), 1 | 2) && t.parse::<u32>().is_ok_and(|n| n <= most);
    let mut parts = date.split('-');
    let year_ok = parts.next().is_some_and(|y| y.len() == 4);
    let month_ok = parts.next().is_some_and(|m| number(m, 12) && m != "0" && m != "00");
    let day_ok = parts.next().is_some_and(|d| number(d, 31) && d != "0" && d != "00");
    if !(year_ok && month_ok && day_ok && parts.next().is_none()) {
        return false;
    }
    let Some((time, spaced)) = time else { return true };
    let zone_at = time.find(['Z', 'z', '+', '-']);
    let (clock, zone) = zone_at.map_or((time, ""), |at| time.split_at(at));
    let zone_ok = match zone {
        "" => spaced,
        "Z" => !spaced,
        other => {
            let hm: Vec<&str> = other[1..].split(':').collect();
            !spaced && hm.len() == 2 && hm.iter().all(|t| t.len() == 2 && t.bytes().all(|b| b.is_ascii_digit()))
        }
    };
    let parts: Vec<&str> = clock.split(':').collect();
    let [hour, minute, second] = parts.as_slice() else { return false };
    let second = second.split_once('.').map_or(*second, |(whole, _)| whole);
    zone_ok && number(hour, 23) && number(minute, 59) && number(second, 59)
}
