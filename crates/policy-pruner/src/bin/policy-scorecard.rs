//! `policy-scorecard`: plays every history of both players and prints one table. Exit status 1 if ours has any damage, or if
//! the peer's known losses do not show: then the judge is blind.
use clap::Parser;
use common::process::cli::{say, table};
use policy_pruner::testing::histories::{Between, History, Judgement, Player, play};
use policy_pruner::testing::server::Mishap;
use std::process::ExitCode;

/// Simulated histories of policy-pruner and of the peer's algorithm.
#[derive(Parser)]
struct Arguments {
    /// Only this: Nothing, StatusWiped, Restored, Replaced, EditedOut.
    #[arg(long)]
    between: Option<String>,
}

#[derive(Default)]
struct Sum {
    histories: usize,
    damaged: usize,
    left: usize,
    foreign: usize,
    stuck: usize,
    example: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let only = Arguments::parse().between;
    let mut rows = Vec::new();
    let (mut clean, mut peer_left, mut peer_foreign) = (true, 0, 0);
    for between in [Between::Nothing, Between::StatusWiped, Between::Restored, Between::Replaced, Between::EditedOut] {
        if only.as_ref().is_some_and(|name| *name != format!("{between:?}")) {
            continue;
        }
        for (what, mishaps) in [
            ("killed before each write", kills_before as fn(usize) -> Mishap),
            ("killed after each write", kills_after),
            ("each reply lost", replies),
            ("a stranger before each write", strangers),
        ] {
            for player in [Player::Ours, Player::Peer] {
                for late in if player == Player::Ours { vec![0, 1, 3] } else { vec![0] } {
                    let sum = run(player, between, late, mishaps).await;
                    match player {
                        Player::Ours => clean &= sum.damaged == 0,
                        Player::Peer => {
                            peer_left += sum.left;
                            peer_foreign += sum.foreign;
                        }
                    }
                    rows.push(vec![
                        format!("{player:?}"),
                        format!("{between:?}"),
                        what.to_owned(),
                        late.to_string(),
                        sum.histories.to_string(),
                        sum.left.to_string(),
                        sum.foreign.to_string(),
                        sum.stuck.to_string(),
                        sum.example,
                    ]);
                }
            }
        }
    }
    let heads =
        ["PLAYER", "BETWEEN", "MISHAP", "LATE", "HISTORIES", "LEFT OVER", "FOREIGN DELETED", "STUCK", "FIRST DAMAGE"];
    say(&table(&heads, &rows));
    let calm = play(History { player: Player::Ours, mishap: Mishap::None, between: Between::Nothing, late: 0 }).await;
    let blind = only.is_none() && (peer_left == 0 || peer_foreign == 0);
    say(&format!(
        "ours: {}; the peer's algorithm in the same histories: {peer_left} left over, {peer_foreign} foreign deleted; an undisturbed life: {} writes, {} requests\n",
        if clean { "no damage" } else { "DAMAGE" },
        calm.writes,
        calm.requests
    ));
    if clean && !blind { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn kills_before(at: usize) -> Mishap {
    Mishap::DieBefore(at)
}
fn kills_after(at: usize) -> Mishap {
    Mishap::DieAfter(at)
}
fn replies(at: usize) -> Mishap {
    Mishap::LoseReply(at)
}
fn strangers(at: usize) -> Mishap {
    Mishap::Stranger(at)
}

/// One mishap at each write of a life that has none, and a few beyond.
async fn run(player: Player, between: Between, late: usize, mishap: fn(usize) -> Mishap) -> Sum {
    let calm = play(History { player, mishap: Mishap::None, between, late }).await;
    let mut sum = Sum::default();
    for at in 1..=calm.writes + 2 {
        let Judgement { left, foreign, stuck, .. } = judge(player, between, late, mishap(at)).await;
        sum.histories += 1;
        sum.left += left;
        sum.foreign += foreign;
        sum.stuck += usize::from(stuck);
        if left + foreign > 0 || stuck {
            sum.damaged += 1;
            if sum.example.is_empty() {
                sum.example = format!("{:?}", mishap(at));
            }
        }
    }
    sum
}
async fn judge(player: Player, between: Between, late: usize, mishap: Mishap) -> Judgement {
    play(History { player, mishap, between, late }).await
}
