//! The policy pruner's process.
use clap::Parser;
use common::process::cli::USAGE;
use common::process::run::{Failure, Identity};
use common::process::{carry_out, run};
use policy_pruner::args::{Cli, Command};
use policy_pruner::cluster::wire::CALL;
use policy_pruner::{controller, names, operate};
use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Nothing can be said if not even this can be printed.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS };
        }
    };
    let (format, filter) = cli.logs();
    carry_out(format, &filter, Box::pin(dispatch(cli.command))).await
}

async fn dispatch(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Controller(args) => {
            let identity = Identity { controller: names::CONTROLLER, version: env!("CARGO_PKG_VERSION"), call: CALL };
            let run_args = args.run_args()?;
            let kube = args.kube.clone();
            Ok(run(identity, &run_args, &kube, |context| controller::serve(context, *args)).await)
        }
        Command::Crd => operate::crd(),
        Command::Plan(args) => operate::plan::plan(&args).await,
        Command::Audit(args) => operate::audit::audit(&args).await,
        Command::Doctor(args) => operate::doctor::doctor(&args).await,
        Command::TriggerUninstall(args) => operate::uninstall::uninstall(&args).await,
    }
}
