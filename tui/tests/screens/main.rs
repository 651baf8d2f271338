//! What the screens show and what keys do, without a terminal and without a session.

#![allow(clippy::unwrap_used)]

mod fixtures;
mod form;
mod keys;
mod recordings;
mod snapshots;
mod space_time;
mod story;
mod updates;
mod words;
