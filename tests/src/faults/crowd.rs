//! Very many satellites at once, and a call that is held among them when central dies.

use std::path::Path;
use std::time::{Duration, Instant};

use ddbx_protocol::link::Keys;
use ddbx_protocol::{ProcessIndex, Status};
use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::kinds::Kind;
use super::play::play_on;
use super::run::{Run, Trouble};
use super::schedule::{Act, Directions, Gate, Schedule};
use super::stage::Stage;
use crate::puppet::Puppet;
use crate::waiting::LIMIT;

/// What became of them.
#[derive(Clone, Debug, Serialize)]
pub struct Crowd {
    /// How many there were.
    pub satellites: usize,
    /// How long it took until all took part.
    pub attached_ms: u64,
    /// For how long the held call stood after central was killed.
    pub release_ms: f64,
}

/// One call, held for a while; then central is killed.
fn schedule() -> Schedule {
    let act = Act {
        kind: Kind::CentralKilled,
        target: 1,
        path: vec![0, 1],
        gate: Gate::Arrive,
        holds_call_only: false,
        held_ms: 500,
        stopped_ms: 0,
        fails: Directions::Both,
        others: Vec::new(),
    };
    Schedule { number: 0, services: 3, is_recorded: false, acts: vec![act] }
}

/// Lets so many take part.
pub(super) async fn meet(satellites: usize, programs: &Path) -> Result<Crowd, Trouble> {
    let schedule = schedule();
    let stage = Stage::open(&schedule, programs, true).await?;
    let began = Instant::now();
    let mut crowd = JoinSet::new();
    let debugger = stage.debugger.as_ref();
    let address = debugger.map(|it| it.address.clone());
    let address = address.ok_or_else(|| Trouble::Stage("no debugger".to_owned()))?;
    for number in 0..satellites {
        let keys = Keys { secret: None, tls: None };
        // Numbers that no process picks by chance.
        let index = ProcessIndex(number as u64 + 1);
        let name = format!("puppet-{number}");
        let puppet = Puppet::attach(&address, &keys, &name, index);
        let puppet = timeout(LIMIT, puppet).await.map_err(|_| late(number))?;
        let mut puppet = puppet.map_err(|error| Trouble::Stage(error.to_string()))?;
        crowd.spawn(async move { puppet.play(&Status::default(), &[]).await });
    }
    let attached_ms = millis(began.elapsed());
    let mut run = Run::default();
    play_on(stage, &schedule, &mut run).await?;
    // Each of them has noticed that central is gone.
    let noticed = async { while crowd.join_next().await.is_some() {} };
    timeout(LIMIT, noticed).await.map_err(|_| late(satellites))?;
    let release = run.releases.first();
    let release_ms = release.map(|release| release.after_ms);
    let release_ms = release_ms.ok_or_else(|| Trouble::Stage("nobody was held".to_owned()))?;
    Ok(Crowd { satellites, attached_ms, release_ms })
}

fn late(number: usize) -> Trouble {
    Trouble::Stage(format!("{number} satellites are too many"))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
