//! The sample controller's process.
use common::process::cli::{self, Command, Title};
use common::process::run::{Failure, Identity};
use common::process::{carry_out, run};
use sample_controller::args::SampleArgs;
use sample_controller::{controller, names, operate};
use std::process::ExitCode;

const TITLE: Title = Title {
    controller: "sample-controller",
    about: "Creates what SampleOwners ask for in the sample cloud, at most once, and deletes only that.",
    version: env!("CARGO_PKG_VERSION"),
};

#[tokio::main]
async fn main() -> ExitCode {
    let cli = match cli::parse::<SampleArgs>(TITLE, std::env::args_os()) {
        Ok(cli) => cli,
        Err(status) => return status,
    };
    carry_out(cli.log_format, &cli.log_filter, Box::pin(dispatch(cli.command))).await
}

async fn dispatch(command: Command<SampleArgs>) -> Result<ExitCode, Failure> {
    match command {
        Command::Run(args) => {
            let (controller, version, call) = (names::CONTROLLER, TITLE.version, args.own.call());
            let identity = Identity { controller, version, call };
            let own = args.own.clone();
            Ok(run(identity, &args.common, &args.kube, |context| controller::serve(context, own)).await)
        }
        Command::Crd => operate::crd(),
        Command::Plan(inspect) => operate::plan(&inspect).await,
        Command::Audit(inspect) => operate::audit(&inspect).await,
        Command::Takeover(args) => operate::takeover(&args).await,
        Command::Release(args) => operate::release(&args).await,
        Command::Doctor(inspect) => operate::doctor(&inspect).await,
    }
}
