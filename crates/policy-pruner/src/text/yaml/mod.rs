//! YAML as it stands in diffs. One exact style: keys in natural order, dashes not indented, strings quoted only where a
//! reader could take them for something else, long plain text folded at eighty columns.
mod order;
mod style;
mod words;

use super::sprint;
use order::natural;
use serde_json::Value;
use style::{Shape, Style, escape};
use words::is_plain_string;

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
