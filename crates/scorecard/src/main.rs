//! `scorecard`: runs the histories, prints the table. Exit status 1 on any damage, silent rule or uncaught mutation.
use clap::Parser;
use scorecard::program::{Arguments, run};
use std::process::ExitCode;

fn main() -> ExitCode {
    run(&Arguments::parse())
}
