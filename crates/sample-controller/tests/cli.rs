//! The command line: consistent, and every flag of `run` has an environment variable.
use clap::CommandFactory;
use common::process::cli::Cli;
use sample_controller::args::SampleArgs;
use std::time::Duration;

#[test]
fn the_command_line_is_consistent() {
    Cli::<SampleArgs>::command().debug_assert();
}

#[test]
fn every_flag_of_run_can_be_set_by_environment() {
    let command = Cli::<SampleArgs>::command();
    let run = command.find_subcommand("run").unwrap();
    let unnamed: Vec<_> =
        run.get_arguments().filter(|it| it.get_env().is_none()).map(|it| it.get_id().as_str()).collect();
    assert_eq!(unnamed, Vec::<&str>::new());
}

#[test]
fn the_default_times_fit_the_lease_and_the_promise_about_settle() {
    let command = Cli::<SampleArgs>::command().try_get_matches_from(["sample", "run"]).unwrap();
    let args = <SampleArgs as clap::FromArgMatches>::from_arg_matches(command.subcommand().unwrap().1).unwrap();
    assert!(args.settings("here").timing.settle() <= Duration::from_secs(90));
    assert!(common::process::leader::Terms::default().check(args.call()).is_ok());
}
