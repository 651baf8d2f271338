//! Programs as users write them, in which luck decides: end-to-end tests record and
//! replay them. One binary plays all roles.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};

mod bank;
mod dice;
mod family;
mod late;
mod outside;
mod stage;

use stage::Stage;

/// A process of a program in which luck decides.
#[derive(Parser)]
struct Cli {
    /// Where the processes meet
    dir: PathBuf,
    #[command(subcommand)]
    role: Role,
}

#[derive(Subcommand)]
enum Role {
    /// Has an account
    Bank {
        /// Do something more when asked to end
        #[arg(long)]
        is_polite: bool,
    },
    /// Is asked by the bank
    Auditor {
        /// Never answer
        #[arg(long)]
        is_silent: bool,
    },
    /// Want money from the bank
    Customers(bank::Customers),
    /// Takes its time
    Leaf,
    /// Asks the leaves, and does not wait for long
    Relay,
    /// Asks the relay, and does not wait for long
    Askers,
    /// Counts whoever comes
    Board,
    /// Starts other processes
    Parent,
    /// Started by the parent
    Child(family::Child),
    /// Calls from outside all controls
    Outside {
        /// Only two calls, side by side
        #[arg(long)]
        only_two: bool,
    },
    /// Lets dice decide
    Dice,
    /// Does nothing that ddbx sees
    Idle {
        /// Do it for ever
        #[arg(long)]
        stays: bool,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let Cli { dir, role } = Cli::parse();
    let stage = |name: &str| Stage::new(&dir, ddbx::init(name));
    match role {
        Role::Bank { is_polite } => bank::serve_bank(&stage("bank"), is_polite).await,
        Role::Auditor { is_silent } => bank::serve_auditor(&stage("auditor"), is_silent).await,
        Role::Customers(customers) => return customers.play(&stage("customers")).await,
        Role::Leaf => late::serve_leaf(&stage("leaf")).await,
        Role::Relay => late::serve_relay(&stage("relay")).await,
        Role::Askers => late::ask(&stage("askers")).await,
        Role::Board => family::serve_board(&stage("board")).await,
        Role::Parent => family::start_children(&stage("parent"), &dir).await,
        Role::Child(child) => return child.play(&stage(&child.name)).await,
        Role::Outside { only_two } => outside::call(&stage("outside"), only_two).await,
        Role::Dice => dice::play(&stage("dice")).await,
        Role::Idle { stays } => {
            let _stage = stage("idle");
            if stays {
                std::future::pending().await
            }
        }
    }
    ExitCode::SUCCESS
}

/// Waits for some time of which ddbx does not know.
async fn luck(longest_ms: u64) {
    tokio::time::sleep(Duration::from_micros(fastrand::u64(0..longest_ms * 1000))).await;
}
