//! The OpenStack controller's process.
use common::process::cli::{self, Command, Title};
use common::process::run::{Failure, Identity};
use common::process::{carry_out, run};
use openstack_server_controller::args::OpenStackArgs;
use openstack_server_controller::{controller, names, operate};
use std::process::ExitCode;

const TITLE: Title = Title {
    controller: "openstack-server-controller",
    about: "Makes servers with their ports, trunks and volumes in OpenStack, at most once, and deletes only those.",
    version: env!("CARGO_PKG_VERSION"),
};

#[tokio::main]
async fn main() -> ExitCode {
    let cli = match cli::parse::<OpenStackArgs>(TITLE, std::env::args_os()) {
        Ok(cli) => cli,
        Err(status) => return status,
    };
    carry_out(cli.log_format, &cli.log_filter, Box::pin(dispatch(cli.command))).await
}

async fn dispatch(command: Command<OpenStackArgs>) -> Result<ExitCode, Failure> {
    match command {
        Command::Run(args) => {
            let (controller, version, call) = (names::CONTROLLER, TITLE.version, args.own.call());
            let identity = Identity { controller, version, call };
            let own = args.own.clone();
            let serving = run(identity, &args.common, &args.kube, |context| controller::serve(context, own));
            Ok(Box::pin(serving).await)
        }
        Command::Crd => operate::crd(),
        Command::Plan(inspect) => operate::plan(&inspect).await,
        Command::Audit(inspect) => operate::audit(&inspect).await,
        Command::Takeover(args) => operate::takeover(&args).await,
        Command::Release(args) => operate::release(&args).await,
        Command::Doctor(inspect) => operate::doctor(&inspect).await,
    }
}
