//! The `ddbx` command, as a library so that tests, benchmarks and fuzzers can
//! reach its parsers.

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

mod central;
pub mod certs;
pub mod demo;
mod exit;
pub mod plan;
mod recordings;
mod replay;
pub mod run;
mod session;
mod table;
use ddbx_tui::{text, words};

use recordings::{inspect, list, verify};
use session::{InSession, breakpoints, events, holds, processes};

/// A debugger for distributed programs that talk by RPC.
///
/// Stop one service at a breakpoint; the others go on until going on could
/// change the order of events, and nothing times out because somebody is looking.
#[derive(Parser)]
#[command(name = "ddbx", bin_name = "ddbx", version, arg_required_else_help = true, after_long_help = OVERVIEW)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const OVERVIEW: &str = "\
A session, in two terminals:
  ddbx run                                          start what ddbx.toml lists
  ddbx break inventory:Inventory.reserve@arrive     stop there
  ddbx holds                                        who stands still, and why
  ddbx continue                                     go on

A rare failure:
  ddbx run --until-fails                            repeat until a run fails, and record it
  ddbx replay REC                                   do the same again, event by event

Exit codes:
  0 well; 1 failure; 2 bad input; 3 no result or divergence; 4 no session; 5 wait timed out";

const COMPLETIONS: &str = "\
Examples:
  source <(ddbx completions bash)
  ddbx completions zsh > ~/.zfunc/_ddbx
  ddbx completions fish > ~/.config/fish/completions/ddbx.fish";

#[derive(Subcommand)]
enum Command {
    Demo(demo::DemoArgs),
    Run(run::RunArgs),
    Replay(replay::ReplayArgs),
    Central(central::CentralArgs),
    Certs(certs::CertsArgs),
    Ps(InSession<words::Ps>),
    Break(InSession<words::Break>),
    Breaks(InSession<words::Breaks>),
    Enable(InSession<words::Enable>),
    Disable(InSession<words::Disable>),
    Delete(InSession<words::Delete>),
    Wait(breakpoints::WaitArgs),
    Holds(InSession<words::Holds>),
    Bt(InSession<words::Bt>),
    Continue(InSession<words::Continue>),
    Release(InSession<words::Release>),
    Pause(InSession<words::Pause>),
    Panic(InSession<words::Panic>),
    Watch(InSession<words::Watch>),
    Events(InSession<words::Events>),
    Stop(InSession<words::Stop>),
    Recordings(list::RecordingsArgs),
    Inspect(inspect::InspectArgs),
    Verify(verify::VerifyArgs),
    Plan(plan::PlanArgs),
    /// Print completions for a shell, to be sourced there
    #[command(after_long_help = COMPLETIONS)]
    Completions {
        /// Which shell
        shell: Shell,
    },
    #[command(hide = true)]
    DemoShop(demo::ShopArgs),
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Run(args) => match run::run(&args) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::Replay(args) => match replay::run(&args) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::Central(args) => central::run(&args),
        Command::Certs(args) => certs::run(&args),
        Command::Ps(args) => processes::ps(&args),
        Command::Break(args) => breakpoints::set(&args),
        Command::Breaks(args) => breakpoints::list(&args),
        Command::Enable(args) => breakpoints::enable(&args),
        Command::Disable(args) => breakpoints::disable(&args),
        Command::Delete(args) => breakpoints::delete(&args),
        Command::Wait(args) => breakpoints::wait(&args),
        Command::Holds(args) => holds::list(&args),
        Command::Bt(args) => holds::backtrace(&args),
        Command::Continue(args) => holds::go_on(&args),
        Command::Release(args) => holds::release(&args),
        Command::Pause(args) => processes::pause(&args),
        Command::Panic(args) => processes::panic(&args),
        Command::Watch(args) => processes::watch(&args),
        Command::Events(args) => events::events(&args),
        Command::Stop(args) => processes::stop(&args),
        Command::Recordings(args) => list::list(&args),
        Command::Inspect(args) => inspect::inspect(&args),
        Command::Verify(args) => verify::verify(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "ddbx", &mut std::io::stdout());
            Ok(())
        }
        Command::Demo(args) => demo::run(&args),
        Command::DemoShop(args) => demo::run_shop(&args),
    };
    exit::code(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who types a word of `ddbx` on the screen is understood, or told where it belongs.
    #[test]
    fn the_screen_knows_every_word() {
        for word in Cli::command().get_subcommands().filter(|word| !word.is_hide_set()) {
            assert!(words::is_known(word.get_name()), "{}", word.get_name());
        }
    }

    /// What is shown of a word is what the word says of itself.
    #[test]
    fn words_keep_their_help() {
        for word in Cli::command().get_subcommands().filter(|word| !word.is_hide_set()) {
            let about = word.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(
                !about.is_empty() && !about.starts_with("Which session"),
                "{}",
                word.get_name()
            );
        }
    }
}
