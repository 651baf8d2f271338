//! A session of some size: its central, its satellites, and what they do.

use std::io;
use std::time::{Duration, Instant};

use ddbx_protocol::control::{Reply, Request, Wanted, Whom};
use serde::Serialize;
use tokio::time::sleep;

use super::central::Central;
use super::satellites::Satellites;
use crate::stats::median;

const WARM_UP: u64 = 20;
/// Calls that are held at the same time, to see what memory they take.
const MANY: u64 = 1_000;
const PATIENCE: Duration = Duration::from_secs(30);

/// It is there until it is dropped.
pub struct Setting {
    pub processes: usize,
    central: Central,
    satellites: Satellites,
    /// How often somebody was held.
    holds: u64,
}

/// What was seen before anybody was held.
#[derive(Serialize)]
pub struct AtRest {
    pub attach_ms: f64,
    pub rest_cpu_percent: f64,
    pub memory_mib: f64,
}

/// Some holds and releases, one after the other.
pub struct Block {
    pub hold_micros: f64,
    pub release_micros: f64,
    pub cpu_micros: f64,
    pub messages: f64,
}

impl Setting {
    /// All attach, and for a while nothing happens.
    pub async fn open(processes: usize, rest_seconds: u64) -> io::Result<(Self, AtRest)> {
        let mut central = Central::start().await?;
        let spec = "process-0:Inventory.reserve@arrive".to_owned();
        let wanted = Wanted { spec, ..Wanted::default() };
        let Reply::Breakpoint(breakpoint) = central.ask(&Request::Break(wanted)).await? else {
            return Err(io::Error::other("the breakpoint is not set"));
        };
        let began = Instant::now();
        let satellites = Satellites::attach(processes, &central.address, breakpoint.id).await?;
        let attach_ms = began.elapsed().as_secs_f64() * 1e3;

        // The first heartbeats of all are over then.
        sleep(Duration::from_secs(1)).await;
        let (began, used) = (Instant::now(), central.cpu()?);
        sleep(Duration::from_secs(rest_seconds)).await;
        let used = (central.cpu()? - used).as_secs_f64();
        let rest_cpu_percent = used / began.elapsed().as_secs_f64() * 100.0;
        let at_rest = AtRest { attach_ms, rest_cpu_percent, memory_mib: central.memory_mib()? };

        let mut setting = Self { processes, central, satellites, holds: 0 };
        for _ in 0..WARM_UP {
            setting.once().await?;
        }
        Ok((setting, at_rest))
    }

    /// So many holds and releases; what is used at rest does not count.
    pub async fn block(&mut self, holds: u64, at_rest: &AtRest) -> io::Result<Block> {
        let sent = self.central.view().await?.messages_sent;
        let (began, used) = (Instant::now(), self.central.cpu()?);
        let mut times = Vec::new();
        for _ in 0..holds {
            times.push(self.once().await?);
        }
        let (used, lasted) = (self.central.cpu()? - used, began.elapsed().as_secs_f64());
        let used = used.as_secs_f64() - at_rest.rest_cpu_percent / 100.0 * lasted;
        let sent = self.central.view().await?.messages_sent - sent;
        let micros = |nth: usize| median(times.iter().map(|times| times[nth].as_secs_f64() * 1e6));
        Ok(Block {
            hold_micros: micros(0),
            release_micros: micros(1),
            cpu_micros: used * 1e6 / holds as f64,
            messages: sent as f64 / holds as f64,
        })
    }

    /// Somebody is held and goes on: how long each takes until all concerned know.
    async fn once(&mut self) -> io::Result<[Duration; 2]> {
        self.holds += 1;
        let hold = self.satellites.hold(self.holds).await?;
        let asked = Instant::now();
        let (reply, release) = tokio::join!(
            self.central.ask(&Request::Continue(Whom::All)),
            self.satellites.goes_on(self.holds, asked)
        );
        reply?;
        Ok([hold, release?])
    }

    /// What central takes for each call that stands still.
    pub async fn held_call_bytes(&mut self) -> io::Result<f64> {
        let before = self.central.memory_mib()?;
        let first = u64::MAX / 2;
        (first..first + MANY).try_for_each(|number| self.satellites.stand(number))?;
        let began = Instant::now();
        while self.central.view().await?.held < MANY {
            if began.elapsed() > PATIENCE {
                return Err(io::Error::other("not all who stand are known to be held"));
            }
            sleep(Duration::from_millis(10)).await;
        }
        Ok((self.central.memory_mib()? - before) * f64::from(1 << 20) / MANY as f64)
    }
}
