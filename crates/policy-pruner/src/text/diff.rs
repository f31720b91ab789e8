//! Unified diffs as people see them in a status: longest matching blocks first, five lines of context.
use std::collections::HashMap;
use std::fmt::Write as _;

const CONTEXT: usize = 5;
/// Lines of a diff kept, and of its header.
const MOST: usize = 50;
const HEADER: usize = 3;
/// From this length on, lines that are very common do not start a match.
const POPULAR_FROM: usize = 200;

/// The difference between two texts; `name` heads it.
pub fn unified(name: &str, existing: &str, updated: &str) -> String {
    let (a, b) = (lines(existing), lines(updated));
    let mut text = String::new();
    for group in groups(&a, &b) {
        if text.is_empty() {
            text = format!("--- {name} : existing\n+++ {name} : updated\n");
        }
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let old = range(first.a.0, last.a.1);
        let new = range(first.b.0, last.b.1);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "@@ -{old} +{new} @@");
        for op in &group {
            let put = |text: &mut String, mark: char, lines: &[String]| {
                for line in lines {
                    text.push(mark);
                    text.push_str(line);
                }
            };
            match op.tag {
                Tag::Equal => put(&mut text, ' ', &a[op.a.0..op.a.1]),
                Tag::Change => {
                    put(&mut text, '-', &a[op.a.0..op.a.1]);
                    put(&mut text, '+', &b[op.b.0..op.b.1]);
                }
            }
        }
    }
    truncate(text)
}

fn truncate(text: String) -> String {
    let parts: Vec<&str> = text.split('\n').collect();
    if parts.len() <= MOST + HEADER {
        return text;
    }
    let kept = parts[..MOST + HEADER].join("\n");
    format!("# Truncated: showing {MOST}/{} diff lines:\n{kept}", parts.len())
}

/// Lines with their ends; one empty line more at the end, which shows as context.
fn lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    if text.is_empty() || text.ends_with('\n') {
        lines.push(String::new());
    }
    if let Some(last) = lines.last_mut() {
        last.push('\n');
    }
    lines
}

fn range(start: usize, stop: usize) -> String {
    match stop - start {
        1 => (start + 1).to_string(),
        0 => format!("{start},0"),
        length => format!("{},{length}", start + 1),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tag {
    Equal,
    Change,
}
#[derive(Clone, Copy, Debug)]
struct Op {
    tag: Tag,
    a: (usize, usize),
    b: (usize, usize),
}

/// Changes with their context, those that touch each other together.
fn groups(a: &[String], b: &[String]) -> Vec<Vec<Op>> {
    let mut codes = codes(a, b);
    if let Some(first) = codes.first_mut()
        && first.tag == Tag::Equal
    {
        first.a.0 = first.a.0.max(first.a.1.saturating_sub(CONTEXT));
        first.b.0 = first.b.0.max(first.b.1.saturating_sub(CONTEXT));
    }
    if let Some(last) = codes.last_mut()
        && last.tag == Tag::Equal
    {
        last.a.1 = last.a.1.min(last.a.0 + CONTEXT);
        last.b.1 = last.b.1.min(last.b.0 + CONTEXT);
    }
    let mut all = Vec::new();
    let mut group = Vec::new();
    for mut op in codes {
        if op.tag == Tag::Equal && op.a.1 - op.a.0 > 2 * CONTEXT {
            let end = Op { a: (op.a.0, op.a.1.min(op.a.0 + CONTEXT)), b: (op.b.0, op.b.1.min(op.b.0 + CONTEXT)), ..op };
            group.push(end);
            all.push(std::mem::take(&mut group));
            op.a.0 = op.a.0.max(op.a.1 - CONTEXT);
            op.b.0 = op.b.0.max(op.b.1 - CONTEXT);
        }
        group.push(op);
    }
    all.push(group);
    all.retain(|group| group.iter().any(|op| op.tag == Tag::Change));
    all
}

fn codes(a: &[String], b: &[String]) -> Vec<Op> {
    let mut ops = Vec::new();
    let (mut i, mut j) = (0, 0);
    let mut blocks = blocks(a, b);
    blocks.push((a.len(), b.len(), 0));
    for (x, y, size) in blocks {
        if i < x || j < y {
            ops.push(Op { tag: Tag::Change, a: (i, x), b: (j, y) });
        }
        if size > 0 {
            ops.push(Op { tag: Tag::Equal, a: (x, x + size), b: (y, y + size) });
        }
        (i, j) = (x + size, y + size);
    }
    ops
}

/// Matching blocks in order, neighbours joined.
fn blocks(a: &[String], b: &[String]) -> Vec<(usize, usize, usize)> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (j, line) in b.iter().enumerate() {
        places.entry(line).or_default().push(j);
    }
    if b.len() >= POPULAR_FROM {
        let common = b.len() / 100 + 1;
        places.retain(|_, at| at.len() <= common);
    }
    let mut found = Vec::new();
    let mut queue = vec![(0, a.len(), 0, b.len())];
    while let Some((alo, ahi, blo, bhi)) = queue.pop() {
        let (i, j, size) = longest(a, b, &places, (alo, ahi), (blo, bhi));
        if size > 0 {
            found.push((i, j, size));
            if alo < i && blo < j {
                queue.push((alo, i, blo, j));
            }
            if i + size < ahi && j + size < bhi {
                queue.push((i + size, ahi, j + size, bhi));
            }
        }
    }
    found.sort_unstable();
    let mut joined: Vec<(usize, usize, usize)> = Vec::new();
    for (i, j, size) in found {
        match joined.last_mut() {
            Some((x, y, length)) if *x + *length == i && *y + *length == j => *length += size,
            _ => joined.push((i, j, size)),
        }
    }
    joined
}

fn longest(
    a: &[String],
    b: &[String],
    places: &HashMap<&str, Vec<usize>>,
    (alo, ahi): (usize, usize),
    (blo, bhi): (usize, usize),
) -> (usize, usize, usize) {
    let (mut best_i, mut best_j, mut best) = (alo, blo, 0);
    let mut lengths: HashMap<usize, usize> = HashMap::new();
    for (i, line) in a.iter().enumerate().take(ahi).skip(alo) {
        let mut next = HashMap::new();
        for &j in places.get(line.as_str()).into_iter().flatten() {
            if j < blo {
                continue;
            }
            if j >= bhi {
                break;
            }
            let length = j.checked_sub(1).and_then(|before| lengths.get(&before)).copied().unwrap_or(0) + 1;
            next.insert(j, length);
            if length > best {
                (best_i, best_j, best) = (i + 1 - length, j + 1 - length, length);
            }
        }
        lengths = next;
    }
    // Popular lines do not start a match, but they extend one.
    while best_i > alo && best_j > blo && a[best_i - 1] == b[best_j - 1] {
        (best_i, best_j, best) = (best_i - 1, best_j - 1, best + 1);
    }
    while best_i + best < ahi && best_j + best < bhi && a[best_i + best] == b[best_j + best] {
        best += 1;
    }
    (best_i, best_j, best)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(most: u32) -> String {
        let lines: Vec<String> = (0..most).map(|n| n.to_string()).collect();
        lines.join("\n") + "\n"
    }

    #[test]
    fn a_changed_line_has_context_and_the_extra_line_at_the_end() {
        let (old, new) = ("a: 1\nb: 2\nc: 3\n", "a: 1\nb: 9\nc: 3\n");
        let expected = "--- ns/x : existing\n+++ ns/x : updated\n@@ -1,4 +1,4 @@\n a: 1\n-b: 2\n+b: 9\n c: 3\n \n";
        assert_eq!(unified("ns/x", old, new), expected);
    }
    #[test]
    fn equal_texts_have_no_difference() {
        assert_eq!(unified("x", "a\nb\n", "a\nb\n"), "");
    }
    #[test]
    fn far_changes_are_groups_of_their_own() {
        let old = numbers(40);
        let new = old.replace("\n3\n", "\nx\n").replace("\n33\n", "\ny\n");
        let text = unified("x", &old, &new);
        assert_eq!(text.matches("@@ -").count(), 2, "{text}");
        assert!(text.contains("@@ -1,9 +1,9 @@") && text.contains("@@ -29,11 +29,11 @@"), "{text}");
    }
    #[test]
    fn long_differences_are_cut() {
        let old = numbers(100);
        let text = unified("x", &old, "other\n");
        assert!(text.starts_with("# Truncated: showing 50/"), "{text}");
        assert_eq!(text.split('\n').count(), 54);
    }
    #[test]
    fn popular_lines_of_long_texts_do_not_confuse() {
        let mut old: Vec<String> = (0..300).map(|n| if n % 2 == 0 { "-".into() } else { n.to_string() }).collect();
        let before = old.join("\n");
        old[151] = "changed".into();
        let text = unified("x", &before, &old.join("\n"));
        assert!(text.contains("-151\n") && text.contains("+changed\n"), "{text}");
        assert_eq!(text.matches("@@ -").count(), 1, "{text}");
    }
}
