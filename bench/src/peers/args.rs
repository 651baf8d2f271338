//! How the two are started.

use std::io;
use std::path::PathBuf;

use clap::Args;

use super::Door;

/// The server.
#[derive(Args)]
pub struct ServerArgs {
    /// Where its sockets are to be
    pub directory: PathBuf,
}

/// The client.
#[derive(Args)]
pub struct ClientArgs {
    /// Where the server is entered, as JSON
    pub doors: String,

    /// Whose processor time counts as well
    #[arg(long)]
    pub cpu_of: Vec<u32>,
}

impl ClientArgs {
    /// Where the server is entered.
    pub fn doors(&self) -> io::Result<Vec<Door>> {
        Ok(serde_json::from_str(&self.doors)?)
    }
}
