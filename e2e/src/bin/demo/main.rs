//! The demo: the real controller on a real API server with an emulated cloud, told step by step.
//! Every claim is checked as it is told; a broken one ends the demo with exit status 1.
#![allow(clippy::print_stdout)] // printing is what it is for
mod cloud;
mod stage;
mod story;

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    let stop = async { tokio::signal::ctrl_c().await };
    tokio::select! {
        told = story::tell() => match told {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                println!("\nThe demo failed: {error}");
                ExitCode::FAILURE
            }
        },
        // Everything is on a leash: it ends with this process.
        _ = stop => ExitCode::from(130),
    }
}
