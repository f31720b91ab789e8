//! The command line.
use crate::bench::{Bench, Scenario};
use crate::openstack;
use crate::sample::Sample;
use crate::{mutations, runner, scenarios, table};
use clap::Parser;
use common::engine::rules::{Rule, Rulebook};
use common::testing::Subject;
use common::testing::bare::Bare;
use std::fmt;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Simulated histories of every engine user: what was tried, what broke, which rules were needed.
#[derive(Debug, Parser)]
#[command(name = "scorecard")]
#[allow(clippy::struct_excessive_bools)] // switches of a command line
pub struct Arguments {
    /// All scenarios at full length, those that can be played through played through: 100,000 histories of the first engine user,
    /// 25,000 of each of the others.
    #[arg(long)]
    full: bool,
    /// Histories per engine user, in all.
    #[arg(long, default_value_t = 10_000)]
    histories: u64,
    /// Only this engine user; mutation rows are hunted with the first one.
    #[arg(long)]
    user: Option<String>,
    /// Only these scenarios.
    #[arg(long)]
    scenario: Vec<String>,
    /// One history again: `<scenario>:<case>`.
    #[arg(long)]
    replay: Option<String>,
    /// With a rule switched off.
    #[arg(long)]
    off: Option<String>,
    /// Print the history.
    #[arg(long)]
    trace: bool,
    /// Leave the mutation rows out.
    #[arg(long)]
    no_mutations: bool,
    /// Only the mutation rows; of this rule, if one is named with --off.
    #[arg(long)]
    mutations_only: bool,
    /// Most histories per scenario in the search for a mutation's damage.
    #[arg(long, default_value_t = 20_000)]
    hunt: u64,
}

fn subjects() -> Vec<Arc<dyn Subject>> {
    let mut all: Vec<Arc<dyn Subject>> = vec![Arc::new(Bare::default()), Arc::new(Sample::default())];
    all.extend(openstack::subjects());
    all
}

#[allow(clippy::print_stdout)] // the table is the program's output
fn say(text: &str) {
    print!("{text}");
}

fn rulebook(off: Option<&str>) -> Option<Rulebook> {
    match off {
        None => Some(Rulebook::testing()),
        Some(name) => Rule::ALL.iter().find(|r| r.name() == name).map(|r| Rulebook::without(*r)),
    }
}

/// Runs what was asked for.
pub fn run(arguments: &Arguments) -> ExitCode {
    let Some(rules) = rulebook(arguments.off.as_deref()) else {
        eprintln!("no such rule; there are: {}", Rule::ALL.iter().map(|r| r.name()).collect::<Vec<_>>().join(" "));
        return ExitCode::from(2);
    };
    let wanted = |s: &Arc<dyn Subject>| arguments.user.as_deref().is_none_or(|name| s.name() == name);
    let subjects: Vec<_> = subjects().into_iter().filter(wanted).collect();
    if let Some(replay) = &arguments.replay {
        return replay_one(arguments, &subjects, rules, replay);
    }
    let mut score = Score::default();
    if !arguments.mutations_only {
        say(table::HEADS);
        for (number, subject) in subjects.iter().enumerate() {
            let bench = Bench { subject: Arc::clone(subject), rules: rules.clone(), trace: false };
            let full = if number == 0 { 100_000 } else { 25_000 };
            let budget = if arguments.full { arguments.histories.max(full) } else { arguments.histories };
            all_scenarios(arguments, &bench, budget, &mut score);
        }
        if arguments.scenario.is_empty() && arguments.off.is_none() {
            let (text, silent) = table::rules(&rules);
            say(&format!("\n{text}"));
            // no single user needs every rule
            score.silent_rules = if arguments.user.is_none() { silent } else { 0 };
        }
    }
    if arguments.mutations_only || !arguments.no_mutations && arguments.off.is_none() && arguments.scenario.is_empty() {
        say(&format!("\n{}", table::MUTATION_HEADS));
        // the rules are the engine's: its barest user, whose cloud has every habit, must need each of them
        for subject in subjects.iter().take(1) {
            let bench = Bench { subject: Arc::clone(subject), rules: Rulebook::testing(), trace: false };
            all_mutations(arguments, &bench, &mut score);
        }
    }
    say(&format!("\n{score}\n"));
    if score.good() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What everything came to.
#[derive(Debug, Default)]
struct Score {
    histories: u64,
    damaged: u64,
    silent_rules: usize,
    mutations: usize,
    missed: usize,
}
impl Score {
    fn good(&self) -> bool {
        self.damaged == 0 && self.silent_rules == 0 && self.missed == 0
    }
}
impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Score { histories, damaged, silent_rules, mutations, missed } = self;
        write!(f, "{histories} histories, {damaged} with damage, {silent_rules} rules that never fired")?;
        if *mutations > 0 {
            write!(f, ", {} of {mutations} mutations caught", mutations - missed)?;
        }
        Ok(())
    }
}

fn all_scenarios(arguments: &Arguments, bench: &Bench, budget: u64, score: &mut Score) {
    let chosen = |s: &&Scenario| arguments.scenario.is_empty() || arguments.scenario.iter().any(|n| n == s.name);
    for scenario in scenarios::ALL.iter().filter(chosen) {
        let share = if arguments.scenario.is_empty() { budget * scenario.share / 1000 } else { budget };
        let total = (scenario.cases)(bench, share.max(1));
        let count = if arguments.full { total } else { total.min(share.max(1)) };
        eprintln!("{} {}: {count} of {total} histories", bench.subject.name(), scenario.name);
        let tally = runner::run_many(bench, scenario, total, count, &AtomicU64::new(0));
        score.histories += tally.histories;
        score.damaged += tally.violations.values().map(|(count, _)| count).sum::<u64>();
        say(&table::scenario(bench.subject.name(), scenario.name, scenario.title, &tally));
    }
}

fn all_mutations(arguments: &Arguments, bench: &Bench, score: &mut Score) {
    let chosen = |m: &&mutations::Mutation| arguments.off.as_deref().is_none_or(|name| m.rule.name() == name);
    for mutation in mutations::ALL.iter().filter(chosen) {
        eprintln!("{} without {}", bench.subject.name(), mutation.rule.name());
        let caught = mutations::hunt(bench, mutation, arguments.hunt);
        score.mutations += 1;
        score.missed += usize::from(caught.is_none());
        say(&table::mutation(bench.subject.name(), mutation, caught.as_ref()));
    }
}

fn replay_one(arguments: &Arguments, subjects: &[Arc<dyn Subject>], rules: Rulebook, replay: &str) -> ExitCode {
    let parsed =
        replay.split_once(':').and_then(|(name, case)| Some((scenarios::named(name)?, case.parse::<u64>().ok()?)));
    let (Some((scenario, case)), Some(subject)) = (parsed, subjects.first()) else {
        eprintln!("--replay takes <scenario>:<case>, as in the table");
        return ExitCode::from(2);
    };
    let bench = Bench { subject: Arc::clone(subject), rules, trace: arguments.trace };
    let verdict = runner::run_one(&bench, scenario, case);
    say(&verdict.trace);
    for line in &verdict.residue {
        say(&format!("residue: {line}\n"));
    }
    for line in &verdict.violations {
        say(&format!("DAMAGE: {line}\n"));
    }
    say(&format!("{} creates, {} deletes, {} calls\n", verdict.creates, verdict.deletes, verdict.calls));
    if verdict.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
