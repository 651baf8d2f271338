//! Processes that are started during the run, and end by themselves.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::{Arc, Mutex};

use tarpc::context::{self, Context};
use tarpc::server::Channel as _;
use tarpc::tokio_serde::formats::Bincode;

use crate::luck;
use crate::stage::Stage;

#[tarpc::service]
pub trait Board {
    /// Writes a name on the board: its place.
    async fn write(name: String) -> usize;
}

#[derive(Clone, Default)]
struct Names(Arc<Mutex<Vec<String>>>);

impl Board for Names {
    async fn write(self, _: Context, name: String) -> usize {
        let mut names = self.0.lock().expect("a lock");
        names.push(name);
        names.len()
    }
}

pub async fn serve_board(stage: &Stage) {
    let names = Names::default();
    let serve = |channel: tarpc::server::BaseChannel<_, _, _>| {
        channel.execute(stage.process.serve(names.clone().serve()))
    };
    stage.serve("board", Bincode::default, serve).await;
}

/// How a child goes.
#[derive(clap::Args)]
pub struct Child {
    /// What it is called
    pub name: String,
    /// How often it writes on the board
    #[arg(long, default_value_t = 2)]
    writes: u32,
    /// Exit without returning from main
    #[arg(long)]
    exits: bool,
    /// Exit with another code
    #[arg(long)]
    fails: bool,
    /// Do not end
    #[arg(long)]
    stays: bool,
}

impl Child {
    pub async fn play(&self, stage: &Stage) -> ExitCode {
        if self.writes > 0 {
            let channel = stage.connect("board", Bincode::default()).await;
            let board = BoardClient::from(stage.process.client(channel));
            for _ in 0..self.writes {
                luck(5).await;
                let place = board.write(context::current(), self.name.clone()).await;
                println!("{} has place {}", self.name, place.expect("an answer"));
            }
        }
        if self.exits {
            std::process::exit(0);
        }
        if self.stays {
            std::future::pending::<()>().await;
        }
        ExitCode::from(if self.fails { 7 } else { 0 })
    }
}

/// Starts some, waits, and starts some more.
pub async fn start_children(stage: &Stage, dir: &Path) {
    let channel = stage.connect("board", Bincode::default()).await;
    let board = BoardClient::from(stage.process.client(channel));
    let program = std::env::current_exe().expect("this program");
    let start = |words: &[&str]| {
        let mut command = Command::new(&program);
        command.arg(dir).arg("child").args(words).spawn().expect("a child")
    };
    for generation in 1..=2 {
        let mut children = vec![
            start(&["anna"]),
            start(&["ben", "--exits"]),
            start(&["carl", "--writes", "0"]),
            start(&["dora", "--writes", "0", "--exits"]),
        ];
        luck(8).await;
        let place = board.write(context::current(), format!("parent {generation}")).await;
        println!("the parent has place {}", place.expect("an answer"));
        for child in &mut children {
            assert!(child.wait().expect("its end").success());
        }
    }
}
