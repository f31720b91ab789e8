//! Which ways of writing can hold a text, character by character.

/// How a text is written.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

/// Which styles can hold a text at all.
#[allow(clippy::struct_excessive_bools)] // four independent answers
pub(super) struct Shape {
    pub(super) multiline: bool,
    pub(super) plain: bool,
    pub(super) single: bool,
    pub(super) block: bool,
}
impl Shape {
    pub(super) fn of(text: &str) -> Shape {
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

/// A character that cannot stand for itself in double quotes.
pub(super) fn escape(c: char) -> Option<String> {
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
