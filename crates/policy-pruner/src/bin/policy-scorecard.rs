//! `policy-scorecard`: plays every history of both players and prints one table. Exit status 1 if ours has any damage, or if
//! the peer's known losses do not show: then the judge is blind.
use clap::Parser;
use common::process::cli::{say, table};
use policy_pruner::testing::histories::{History, LATE, Player, play};
use policy_pruner::testing::scene::{BETWEEN, Between};
use policy_pruner::testing::server::Mishap;
use std::collections::HashMap;
use std::process::ExitCode;

/// Simulated histories of policy-pruner and of the peer's algorithm: one mishap at each write, then pairs of mishaps.
#[derive(Parser)]
struct Arguments {
    /// At least so many histories of ours.
    #[arg(long, default_value_t = 10_000)]
    histories: usize,
    /// At least 100,000 histories.
    #[arg(long)]
    full: bool,
    /// Leave out the peer's algorithm, which shows that the judge sees.
    #[arg(long)]
    no_mutations: bool,
    /// Only this pair of mishaps again, to read.
    #[arg(long, value_name = "SEED")]
    pair: Option<u64>,
}

/// A mishap at the write of this number.
type At = fn(usize) -> Mishap;
const MISHAPS: [(&str, At); 5] = [
    ("killed before each write", Mishap::DieBefore),
    ("killed after each write", Mishap::DieAfter),
    ("each reply lost", Mishap::LoseReply),
    ("a stranger before each write", Mishap::Stranger),
    ("each watch event dropped", Mishap::DropEvent),
];

#[derive(Default)]
struct Sum {
    histories: usize,
    left: usize,
    foreign: usize,
    stuck: usize,
    example: String,
}
impl Sum {
    async fn play(&mut self, history: History, name: impl FnOnce() -> String) {
        let found = play(history).await;
        self.histories += 1;
        self.left += found.left;
        self.foreign += found.foreign;
        self.stuck += usize::from(found.stuck);
        if !found.is_clean() && self.example.is_empty() {
            self.example = name();
        }
    }
    fn add(&mut self, other: Sum) {
        self.histories += other.histories;
        self.left += other.left;
        self.foreign += other.foreign;
        self.stuck += other.stuck;
        if self.example.is_empty() {
            self.example = other.example;
        }
    }
    fn is_clean(&self) -> bool {
        self.example.is_empty()
    }
    fn row(&self, head: [String; 4]) -> Vec<String> {
        let figures = [self.histories, self.left, self.foreign, self.stuck].map(|n| n.to_string());
        head.into_iter().chain(figures).chain([self.example.clone()]).collect()
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut writes: HashMap<(Between, usize), usize> = HashMap::new();
    for between in BETWEEN {
        for late in LATE {
            writes.insert((between, late), play(History::calm(Player::Ours, between, late)).await.writes);
        }
    }
    let writes_of = |between, late| writes.get(&(between, late)).copied().unwrap_or(1);
    if let Some(seed) = arguments.pair {
        let history = History::of_seed(seed, writes_of);
        let found = play(history).await;
        say(&format!("{history:?}\n{found:?}\n"));
        return if found.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }

    let mut rows = Vec::new();
    let (mut clean, mut played, mut peer) = (true, 0, Sum::default());
    for between in BETWEEN {
        for (what, mishap) in MISHAPS {
            for (player, late) in LATE.map(|late| (Player::Ours, late)).into_iter().chain([(Player::Peer, 0)]) {
                if player == Player::Peer && arguments.no_mutations {
                    continue;
                }
                let sum = each_write(player, between, late, mishap).await;
                rows.push(sum.row([format!("{player:?}"), format!("{between:?}"), what.to_owned(), late.to_string()]));
                if player == Player::Ours {
                    clean &= sum.is_clean();
                    played += sum.histories;
                } else {
                    peer.left += sum.left;
                    peer.foreign += sum.foreign;
                }
            }
        }
    }
    let wanted = if arguments.full { arguments.histories.max(100_000) } else { arguments.histories };
    let pairs = pairs(wanted.saturating_sub(played) as u64, &writes_of);
    clean &= pairs.is_clean();
    played += pairs.histories;
    rows.push(pairs.row(["Ours".into(), "any".into(), "two of them, anywhere".into(), "any".into()]));

    let heads =
        ["PLAYER", "BETWEEN", "MISHAP", "LATE", "HISTORIES", "LEFT OVER", "FOREIGN DELETED", "STUCK", "FIRST DAMAGE"];
    say(&table(&heads, &rows));
    let calm = play(History::calm(Player::Ours, Between::Nothing, 0)).await;
    let compared = if arguments.no_mutations {
        String::new()
    } else {
        format!("; the peer's algorithm: {} left over, {} foreign deleted", peer.left, peer.foreign)
    };
    say(&format!(
        "policy-pruner: {played} histories, {}{compared}; an undisturbed life: {} writes, {} requests\n",
        if clean { "no damage" } else { "DAMAGE" },
        calm.writes,
        calm.requests
    ));
    let blind = !arguments.no_mutations && (peer.left == 0 || peer.foreign == 0);
    if clean && !blind { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// So many pairs of mishaps, on every core: a history shares nothing with another.
fn pairs(count: u64, writes_of: &(impl Fn(Between, usize) -> usize + Sync)) -> Sum {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let some = |first: usize| {
        let mut sum = Sum::default();
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(why) => return Sum { example: format!("nothing was played: {why}"), ..sum },
        };
        runtime.block_on(async {
            for seed in (1..=count).skip(first).step_by(threads) {
                sum.play(History::of_seed(seed, writes_of), || format!("--pair {seed}")).await;
            }
        });
        sum
    };
    std::thread::scope(|scope| {
        let hands: Vec<_> = (0..threads).map(|first| scope.spawn(move || some(first))).collect();
        let mut all = Sum::default();
        for hand in hands {
            match hand.join() {
                Ok(sum) => all.add(sum),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    })
}

/// One mishap at each write of a life that has none, and a few beyond.
async fn each_write(player: Player, between: Between, late: usize, mishap: At) -> Sum {
    let calm = play(History::calm(player, between, late)).await;
    let mut sum = Sum::default();
    for at in 1..=calm.writes + 2 {
        let mishaps = [mishap(at), Mishap::None];
        // The peer's algorithm remembers nothing: it makes no difference whether its process lives on.
        for lives_on in [false, true].into_iter().take(if player == Player::Ours { 2 } else { 1 }) {
            let lives = if lives_on { ", lives on" } else { "" };
            let history = History { player, mishaps, between, late, lives_on };
            sum.play(history, || format!("{:?}{lives}", mishap(at))).await;
        }
    }
    sum
}
