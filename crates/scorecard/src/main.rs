//! `scorecard`: see `hack/scorecard --help`.
use common::engine::rules::{Rule, Rulebook};
use common::testing::bare::Bare;
use scorecard::bench::Bench;
use scorecard::scenarios;
use std::collections::BTreeMap;
use std::sync::Arc;

#[allow(clippy::print_stdout)]
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let name = args[0].clone();
    let n: u64 = args[1].parse().unwrap();
    let first: u64 = args.get(2).and_then(|a| a.parse().ok()).unwrap_or(1);
    let off = args.get(3).and_then(|a| Rule::ALL.iter().find(|r| r.name() == a));
    let rules = off.map_or_else(Rulebook::testing, |r| Rulebook::without(*r));
    let trace = std::env::args().any(|a| a == "--trace");
    let bench = Bench { subject: Arc::new(Bare), rules: rules.clone(), trace };
    let scenario = scenarios::named(&name).unwrap();
    let mut all: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for seed in first..first + n {
        let v = (scenario.run)(&bench, seed);
        if trace {
            println!("{}", v.trace);
        }
        for x in v.violations.iter().chain(v.residue.iter()) {
            let e = all.entry(x.clone()).or_insert((0, seed));
            e.0 += 1;
        }
    }
    for (k, (c, s)) in all {
        println!("{c:6} {k} (seed {s})");
    }
    if !trace {
        for r in Rule::ALL {
            println!("   {} {}", r.name(), rules.fired(*r));
        }
    }
}
