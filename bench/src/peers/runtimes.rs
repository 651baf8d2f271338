//! A runtime of each flavor, side by side in one process: what is measured in the one can be
//! measured in the other, over connections of its own.

use std::io;

use tokio::runtime::{Builder, Runtime};

use super::Flavor;

/// All that there are. Only one at a time has anything to do.
pub struct Runtimes {
    multi_thread: Runtime,
    current_thread: Runtime,
}

impl Runtimes {
    /// As many workers as there are cores for this process; it is to be pinned before.
    pub fn start() -> io::Result<Self> {
        Ok(Self {
            multi_thread: Builder::new_multi_thread().enable_all().build()?,
            current_thread: Builder::new_current_thread().enable_all().build()?,
        })
    }

    pub fn of(&self, flavor: Flavor) -> &Runtime {
        match flavor {
            Flavor::MultiThread => &self.multi_thread,
            Flavor::CurrentThread => &self.current_thread,
        }
    }
}
