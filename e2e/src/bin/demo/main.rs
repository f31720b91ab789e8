//! The demo: the real controllers on a real API server, told act by act, step by step.
//! Every claim is checked as it is told; a broken one ends the demo with exit status 1.
#![allow(clippy::print_stdout)] // printing is what it is for
mod openstack;
mod policy;
mod sample;
mod telling;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    act: Act,
}

/// One act for each controller.
#[derive(Subcommand)]
enum Act {
    /// Things in an emulated cloud: created once, deleted again.
    Sample,
    /// Objects that a policy asks for: removed with it.
    Policy,
    /// Servers in an emulated OpenStack, and a bastion under one address.
    #[command(name = "openstack")]
    OpenStack,
}

#[tokio::main]
async fn main() -> ExitCode {
    let stop = async { tokio::signal::ctrl_c().await };
    let tell = async {
        match Cli::parse().act {
            Act::Sample => sample::tell().await,
            Act::Policy => policy::tell().await,
            Act::OpenStack => openstack::tell().await,
        }
    };
    tokio::select! {
        told = tell => match told {
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
