//! What can go wrong with a process of the shop.

use std::io;
use std::path::PathBuf;

use crate::api::Trouble;
use crate::services;

/// Why a process of the shop could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The environment names no directory.
    #[error(
        "SHOP_DIR is not set: set it to a directory that all processes of the shop share, \
         for example with `export SHOP_DIR=$(mktemp -d)`"
    )]
    NoDirectory,
    /// The environment asks for a speed that there is not.
    #[error("SHOP_SLOWER is {0:?}: set it to a whole number from 1 to 1000, or not at all")]
    BadSlower(String),
    /// [`run`](crate::run) was asked for something else than one of the services.
    #[error("the shop has no service {0:?}: it has {known}", known = services().join(", "))]
    NoSuchService(String),
    /// A service could not open its door.
    #[error("{service} cannot listen on 127.0.0.1: {source}")]
    Listen {
        /// Who wanted to listen.
        service: &'static str,
        /// Why it cannot.
        source: io::Error,
    },
    /// A service could not tell the others where it is.
    #[error("cannot write {path}: {source}. Is SHOP_DIR a directory that you may write to?")]
    Publish {
        /// The file with the address.
        path: PathBuf,
        /// Why it cannot be written.
        source: io::Error,
    },
    /// A service that is needed did not come.
    #[error(
        "{service} did not answer at the address in {path} for 30 s: \
         is `shop {service}` running, with the same SHOP_DIR?"
    )]
    NotFound {
        /// Who is missing.
        service: &'static str,
        /// Where its address should be.
        path: PathBuf,
    },
    /// A call that had to succeed did not.
    #[error("{call} failed: {trouble}")]
    Call {
        /// Which call.
        call: &'static str,
        /// What came back.
        trouble: Trouble,
    },
}
