//! Where the shop is, and how fast its clocks run.

use std::env;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tarpc::context::{self, Context};

use crate::Error;

/// How long a call may take.
const DEADLINE: Duration = Duration::from_millis(200);

/// How long a lease holds if nobody renews it.
const LEASE: Duration = Duration::from_millis(400);

/// How often a lease is renewed.
const RENEWAL: Duration = Duration::from_millis(100);

/// What all processes of one shop have in common.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directory in which the services leave their addresses.
    pub dir: PathBuf,
    /// Every deadline and lease is longer by this factor. For slow machines; 1 is normal.
    pub slower: u32,
}

impl Options {
    /// A shop at normal speed.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), slower: 1 }
    }

    /// As the environment says: `SHOP_DIR`, and `SHOP_SLOWER` if it is there.
    pub fn from_env() -> Result<Self, Error> {
        let dir = env::var_os("SHOP_DIR").filter(|dir| !dir.is_empty());
        Self::in_dir(dir.ok_or(Error::NoDirectory)?)
    }

    /// A shop in this directory, as fast as the environment says.
    pub fn in_dir(dir: impl Into<PathBuf>) -> Result<Self, Error> {
        let mut options = Self::new(dir);
        if let Some(slower) = env::var_os("SHOP_SLOWER") {
            let number = slower.to_str().and_then(|text| text.parse().ok());
            options.slower = number
                .filter(|number| (1..=1_000).contains(number))
                .ok_or_else(|| Error::BadSlower(slower.to_string_lossy().into_owned()))?;
        }
        Ok(options)
    }

    /// The context of a call that starts here. Calls inside a handler pass on the one
    /// that the handler was given: the whole order has one deadline.
    pub(crate) fn context(&self) -> Context {
        let mut context = context::current();
        context.deadline = Instant::now() + self.deadline();
        context
    }

    /// How long a call may take.
    pub fn deadline(&self) -> Duration {
        DEADLINE * self.slower
    }

    /// How long a lease holds if nobody renews it.
    pub fn lease(&self) -> Duration {
        LEASE * self.slower
    }

    pub(crate) fn renewal(&self) -> Duration {
        RENEWAL * self.slower
    }
}
