//! The table, as text.
use crate::mutations::{Caught, Mutation};
use crate::runner::Tally;
use common::engine::rules::{Rule, Rulebook};
use std::fmt::Write as _;

/// One scenario of one subject.
pub fn scenario(subject: &str, name: &str, title: &str, tally: &Tally) -> String {
    let damaged: u64 = tally.violations.values().map(|(count, _)| count).sum();
    let verdict = if damaged == 0 { "pass" } else { "FAIL" };
    let residue: u64 = tally.residue.values().map(|(count, _)| count).sum();
    let mut text = format!(
        "| {subject} | {name} | {title} | {} | {} | {damaged} | {residue} | {verdict} |\n",
        tally.histories, tally.calls
    );
    for (line, (count, case)) in &tally.violations {
        let _ = writeln!(text, "|   |   | ! {line} | {count} | replay {name}:{case} | | | |");
    }
    for (line, (count, case)) in &tally.residue {
        let _ = writeln!(text, "|   |   | ~ {line} | {count} | replay {name}:{case} | | | |");
    }
    text
}

/// Heads of the scenario rows.
pub const HEADS: &str =
    "| user | scenario | what | histories | calls | damage | residue | verdict |\n|---|---|---|---|---|---|---|---|\n";

/// How often each rule made a difference, and how many never did.
pub fn rules(book: &Rulebook) -> (String, usize) {
    let mut text = String::from("| rule | says | fired |\n|---|---|---|\n");
    let mut silent = 0;
    for rule in Rule::ALL {
        let fired = book.fired(*rule);
        silent += usize::from(fired == 0);
        let count = if fired == 0 { "NEVER".to_owned() } else { fired.to_string() };
        let _ = writeln!(text, "| {} | {} | {count} |", rule.name(), rule.says().trim());
    }
    (text, silent)
}

/// One mutation of one subject.
pub fn mutation(subject: &str, mutation: &Mutation, caught: Option<&Caught>) -> String {
    let name = mutation.rule.name();
    match caught {
        Some(Caught { replay, damage }) => {
            format!("| {subject} | {name} | {} | {damage} | --replay {replay} --off {name} |\n", mutation.means)
        }
        None => format!("| {subject} | {name} | {} | NOT FOUND | |\n", mutation.means),
    }
}

/// Heads of the mutation rows.
pub const MUTATION_HEADS: &str = "| user | rule off | which means | damage found | show it |\n|---|---|---|---|---|\n";
