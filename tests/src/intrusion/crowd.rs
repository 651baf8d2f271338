//! More strangers at once than central cares for. They cost it a bounded number of
//! descriptors, and whoever belongs to the session still comes in.

use std::time::Instant;

use serde::Serialize;

use super::kinds::Door;
use super::other_user::millis;
use super::target::{Target, Targets};

/// How many come at once. Central has room for 256 whom it does not know.
const CROWD: usize = 600;

/// How many descriptors all of them together may cost.
const DESCRIPTORS_MAX: usize = 300;

/// What a crowd did.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Crowd {
    /// Where.
    pub door: Door,
    /// How many connected and said nothing.
    pub strangers: usize,
    /// How many descriptors the session had open for them, at most.
    pub descriptors: usize,
    /// Whether that is what it may.
    pub is_bounded: bool,
    /// How long somebody who belongs to the session waited for an answer meanwhile.
    pub answered_ms: u64,
}

pub(super) async fn at_every_door(targets: &Targets) -> Result<Vec<Crowd>, String> {
    let mut crowds = Vec::new();
    for target in targets.all() {
        crowds.push(at(target).await?);
    }
    Ok(crowds)
}

async fn at(target: &Target) -> Result<Crowd, String> {
    let mut strangers = Vec::with_capacity(CROWD);
    let mut descriptors = 0;
    for nth in 0..CROWD {
        let stranger = target.connect().await;
        strangers.push(stranger.map_err(|error| format!("a crowd cannot come: {error}"))?);
        if nth % 50 == 0 {
            descriptors = descriptors.max(target.used().descriptors);
        }
    }
    let since = Instant::now();
    target.answer().await?;
    let answered_ms = millis(since.elapsed());
    descriptors = descriptors.max(target.used().descriptors).saturating_sub(target.descriptors);
    let is_bounded = descriptors <= DESCRIPTORS_MAX;
    Ok(Crowd {
        door: target.door,
        strangers: strangers.len(),
        descriptors,
        is_bounded,
        answered_ms,
    })
}
