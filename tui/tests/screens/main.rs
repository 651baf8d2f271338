//! What the screens show and what keys do, without a terminal and without a session.

#![allow(clippy::unwrap_used)]

mod fixtures;
mod form;
mod keys;
mod snapshots;
mod updates;
mod words;
