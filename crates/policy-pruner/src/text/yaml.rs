//! YAML as it stands in diffs. One exact style: keys in natural order, dashes not indented, strings quoted only where a
//! reader could take them for something else, long plain text folded at eighty columns.
use super::sprint;
use serde_json::Value;
use std::cmp::Ordering;

const WIDTH: usize = 80;
const INDENT: usize = 2;

/// A value as a YAML document.
pub fn to_yaml(value: &Value) -> String {
    let mut out = Writer { text: String::new(), column: 0 };
    match value {
        Value::Object(map) if !map.is_empty() => out.mapping(map, 0, false),
        Value::Array(items) if !items.is_empty() => out.sequence(items, 0, false),
        other => {
            out.scalar(other, INDENT, false);
            out.newline();
        }
    }
    out.text
}

struct Writer {
    text: String,
    column: usize,
}
impl Writer {
    fn put(&mut self, text: &str) {
        self.text.push_str(text);
        self.column += text.chars().count();
    }
    fn newline(&mut self) {
        if !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        self.column = 0;
    }
    fn break_line(&mut self, indent: usize) {
        self.text.push('\n');
        self.column = 0;
        self.put(&" ".repeat(indent));
    }
    /// `inline`: the first key stands behind a dash that is already written.
    fn mapping(&mut self, map: &serde_json::Map<String, Value>, indent: usize, inline: bool) {
        let mut keys: Vec<&String> = map.keys().collect();
        keys.sort_by(|a, b| natural(a, b));
        for (n, key) in keys.into_iter().enumerate() {
            if n > 0 || !inline {
                self.put(&" ".repeat(indent));
            }
            self.string(key, indent + INDENT, true);
            self.put(":");
            match &map[key] {
                Value::Object(inner) if !inner.is_empty() => {
                    self.newline();
                    self.mapping(inner, indent + INDENT, false);
                }
                Value::Array(items) if !items.is_empty() => {
                    self.newline();
                    self.sequence(items, indent, false);
                }
                other => {
                    self.put(" ");
                    self.scalar(other, indent + INDENT, false);
                    self.newline();
                }
            }
        }
    }
    fn sequence(&mut self, items: &[Value], indent: usize, inline: bool) {
        for (n, item) in items.iter().enumerate() {
            if n > 0 || !inline {
                self.put(&" ".repeat(indent));
            }
            self.put("- ");
            match item {
                Value::Object(inner) if !inner.is_empty() => self.mapping(inner, indent + INDENT, true),
                Value::Array(inner) if !inner.is_empty() => self.sequence(inner, indent + INDENT, true),
                other => {
                    self.scalar(other, indent + INDENT, false);
                    self.newline();
                }
            }
        }
    }
    fn scalar(&mut self, value: &Value, indent: usize, key: bool) {
        match value {
            Value::Null => self.put("null"),
            Value::Bool(b) => self.put(if *b { "true" } else { "false" }),
            Value::Number(n) => self.put(&sprint::number(n)),
            Value::String(s) => self.string(s, indent, key),
            Value::Array(_) => self.put("[]"),
            Value::Object(_) => self.put("{}"),
        }
    }
    fn string(&mut self, text: &str, indent: usize, key: bool) {
        let shape = Shape::of(text);
        let wanted = if text.contains('\n') {
            Style::Literal
        } else if is_plain_string(text) {
            Style::Plain
        } else {
            Style::Double
        };
        let style = match wanted {
            Style::Literal if !key && shape.block => Style::Literal,
            Style::Literal | Style::Double => Style::Double,
            _ if key && shape.multiline => Style::Double,
            _ if shape.plain && !(key && text.is_empty()) => Style::Plain,
            _ if shape.single => Style::Single,
            _ => Style::Double,
        };
        match style {
            Style::Plain => self.folded(text, indent, key, false),
            Style::Single => {
                self.put("'");
                self.folded(text, indent, key, true);
                self.put("'");
            }
            Style::Double => self.double(text, indent, key),
            Style::Literal => self.literal(text, indent),
        }
    }
    /// Plain and single-quoted text: a single space beyond the width becomes a line break.
    fn folded(&mut self, text: &str, indent: usize, key: bool, quoted: bool) {
        let chars: Vec<char> = text.chars().collect();
        let mut spaces = false;
        for (i, c) in chars.iter().enumerate() {
            if *c == ' ' {
                let inside = !quoted || (i > 0 && i + 1 < chars.len());
                let next_is_space = chars.get(i + 1) == Some(&' ');
                if !key && !spaces && self.column > WIDTH && inside && !next_is_space {
                    self.break_line(indent);
                } else {
                    self.put(" ");
                }
                spaces = true;
            } else {
                if quoted && *c == '\'' {
                    self.put("'");
                }
                self.put(c.encode_utf8(&mut [0; 4]));
                spaces = false;
            }
        }
    }
    fn double(&mut self, text: &str, indent: usize, key: bool) {
        self.put("\"");
        let chars: Vec<char> = text.chars().collect();
        let mut spaces = false;
        for (i, c) in chars.iter().enumerate() {
            if *c == ' ' {
                if !key && !spaces && self.column > WIDTH && i > 0 && i + 1 < chars.len() {
                    self.break_line(indent);
                    if chars.get(i + 1) == Some(&' ') {
                        self.put("\\");
                    }
                } else {
                    self.put(" ");
                }
                spaces = true;
                continue;
            }
            spaces = false;
            match escape(*c) {
                Some(escaped) => self.put(&escaped),
                None => self.put(c.encode_utf8(&mut [0; 4])),
            }
        }
        self.put("\"");
    }
    fn literal(&mut self, text: &str, indent: usize) {
        self.put("|");
        if text.starts_with([' ', '\n']) {
            self.put(&INDENT.to_string());
        }
        if !text.ends_with('\n') {
            self.put("-");
        } else if text == "\n" || text.ends_with("\n\n") {
            self.put("+");
        }
        self.text.push('\n');
        for line in text.split_inclusive('\n') {
            let content = line.trim_end_matches('\n');
            if !content.is_empty() {
                self.text.push_str(&" ".repeat(indent));
                self.text.push_str(content);
            }
            if line.ends_with('\n') {
                self.text.push('\n');
            }
        }
        self.column = 1;
        // The break that ends the text ends the line, too.
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

/// Which styles can hold a text at all.
#[allow(clippy::struct_excessive_bools)] // four independent answers
struct Shape {
    multiline: bool,
    plain: bool,
    single: bool,
    block: bool,
}
impl Shape {
    fn of(text: &str) -> Shape {
        if text.is_empty() {
            return Shape { multiline: false, plain: true, single: true, block: false };
        }
        let chars: Vec<char> = text.chars().collect();
        let mut indicators = text.starts_with("---") || text.starts_with("...");
        let (mut breaks, mut special, mut break_space, mut space_break) = (false, false, false, false);
        let (mut after_space, mut after_break) = (false, false);
        for (i, c) in chars.iter().enumerate() {
            let before_white = chars.get(i + 1).is_none_or(|n| matches!(n, ' ' | '\t' | '\n' | '\r'));
            let after_white = i == 0 || matches!(chars[i - 1], ' ' | '\t' | '\n' | '\r');
            if i == 0 {
                indicators |= matches!(
                    c,
                    '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`'
                );
                indicators |= matches!(c, '?' | ':' | '-') && before_white;
            } else {
                indicators |= *c == ':' && before_white;
                indicators |= *c == '#' && after_white;
            }
            let is_break = matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}');
            special |= !is_break && !printable(*c);
            breaks |= is_break;
            if *c == ' ' {
                break_space |= after_break;
                (after_space, after_break) = (true, false);
            } else if is_break {
                space_break |= after_space;
                (after_space, after_break) = (false, true);
            } else {
                (after_space, after_break) = (false, false);
            }
        }
        let edge_space = text.starts_with(' ') || text.ends_with(' ');
        let trailing_space = text.ends_with(' ');
        let hard = space_break || special;
        Shape {
            multiline: breaks,
            plain: !(indicators || breaks || edge_space || break_space || hard),
            single: !(break_space || hard),
            block: !(trailing_space || hard),
        }
    }
}

fn printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..='\u{10ffff}')
}

fn escape(c: char) -> Option<String> {
    let short = match c {
        '"' => "\\\"",
        '\\' => "\\\\",
        '\0' => "\\0",
        '\u{7}' => "\\a",
        '\u{8}' => "\\b",
        '\t' => "\\t",
        '\n' => "\\n",
        '\u{b}' => "\\v",
        '\u{c}' => "\\f",
        '\r' => "\\r",
        '\u{1b}' => "\\e",
        '\u{85}' => "\\N",
        '\u{a0}' => "\\_",
        '\u{2028}' => "\\L",
        '\u{2029}' => "\\P",
        _ if printable(c) => return None,
        _ => {
            let code = u32::from(c);
            return Some(match code {
                0..=0xff => format!("\\x{code:02X}"),
                0x100..=0xffff => format!("\\u{code:04X}"),
                _ => format!("\\U{code:08X}"),
            });
        }
    };
    Some(short.into())
}

/// Would a reader take the bare text for a string?
fn is_plain_string(text: &str) -> bool {
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

/// Letters after everything else, runs of digits by their value.
fn natural(a: &str, b: &str) -> Ordering {
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_reads_as_expected() {
        let value = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "x", "labels": {}, "creationTimestamp": "2026-11-16T08:00:00Z"},
            "spec": {"containers": [{"name": "a", "args": ["-x", "1"], "ports": [{"containerPort": 80}]}], "list": [["a"], []]},
            "e": null, "b": false, "f": 1.5
        });
        let expected = "apiVersion: v1\nb: false\ne: null\nf: 1.5\nkind: Pod\nmetadata:\n  creationTimestamp: \"2026-11-16T08:00:00Z\"\n  labels: {}\n  name: x\nspec:\n  containers:\n  - args:\n    - -x\n    - \"1\"\n    name: a\n    ports:\n    - containerPort: 80\n  list:\n  - - a\n  - []\n";
        assert_eq!(to_yaml(&value), expected);
    }
    #[test]
    fn strings_are_quoted_where_needed() {
        for (text, shown) in [
            ("plain text", "plain text"),
            ("", "\"\""),
            ("true", "\"true\""),
            ("on", "\"on\""),
            ("12", "\"12\""),
            ("1e3", "\"1e3\""),
            ("0x1F", "\"0x1F\""),
            ("1_000", "\"1_000\""),
            ("10:30", "\"10:30\""),
            ("2026-11-16", "\"2026-11-16\""),
            ("v1", "v1"),
            ("a: b", "'a: b'"),
            ("a:b", "a:b"),
            ("- a", "'- a'"),
            ("-a", "-a"),
            ("#c", "'#c'"),
            ("a #c", "'a #c'"),
            ("it's", "it's"),
            ("'q", "'''q'"),
            ("*", "'*'"),
            ("tab\there", "\"tab\\there\""),
            (" lead", "' lead'"),
            ("null", "\"null\""),
            ("ünï", "ünï"),
            ("1.2.3", "1.2.3"),
            ("=", "="),
        ] {
            assert_eq!(to_yaml(&json!({ "k": text })), format!("k: {shown}\n"), "{text}");
        }
    }
    #[test]
    fn several_lines_are_a_block() {
        assert_eq!(to_yaml(&json!({"k": "a\nb\n"})), "k: |\n  a\n  b\n");
        assert_eq!(to_yaml(&json!({"k": "a\n\nb"})), "k: |-\n  a\n\n  b\n");
        assert_eq!(to_yaml(&json!({"k": "a\n\n", "z": 1})), "k: |+\n  a\n\nz: 1\n");
        assert_eq!(to_yaml(&json!({"k": " a\nb"})), "k: |2-\n   a\n  b\n");
        assert_eq!(to_yaml(&json!({"k": "a \nb"})), "k: \"a \\nb\"\n");
    }
    #[test]
    fn long_text_is_folded() {
        let long = "word ".repeat(30).trim_end().to_owned();
        let yaml = to_yaml(&json!({ "k": long }));
        let lines: Vec<&str> = yaml.lines().collect();
        assert_eq!(lines.len(), 2, "{yaml}");
        assert!(lines[0].len() > 80 && lines[1].starts_with("  word"), "{yaml}");
    }
    #[test]
    fn keys_are_in_natural_order() {
        let yaml = to_yaml(&json!({"a10": 1, "a2": 1, "b": 1, "B": 1, "0": 1, "a-b": 1, "ab": 1}));
        let keys: Vec<&str> = yaml.lines().map(|l| l.split(':').next().unwrap()).collect();
        assert_eq!(keys, ["\"0\"", "B", "a-b", "a2", "a10", "ab", "b"]);
    }
}
