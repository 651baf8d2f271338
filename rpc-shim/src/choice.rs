//! What a program reads from outside, so that a replay reads the same.

#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use bincode::Options;
use ddbx_protocol::{CallPath, ChoiceName, ControlId};
use ddbx_recording::ChoiceValue;
use ddbx_satellite::driver::Handle;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::control::{self, Control};
use crate::naming;
use crate::process::Process;

/// About how many choices something is said at the most.
const SAID_MAX: usize = 64;

/// A value that could not be written. It keeps the place of that choice.
const UNWRITTEN: [u8; 0] = [];

/// What the program takes from outside: a setting, a sensor, the answer of another
/// system. It is recorded, and a replay gets the recorded value instead of choosing.
///
/// The choices of a control under one name are told apart by their order. A value can
/// have up to 4096 bytes. Outside a control (see [`Process::choice`]), and if nothing is
/// recorded or replayed, it is just `choose()`.
///
/// ```
/// let workers = ddbx::choice("workers", || std::env::args().count());
/// # assert!(workers > 0);
/// ```
pub fn choice<T: Serialize + DeserializeOwned>(name: &str, choose: impl FnOnce() -> T) -> T {
    match control::on_course() {
        Some(control) => control.choice(name, choose),
        None => choose(),
    }
}

impl Control {
    pub(crate) fn choice<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        choose: impl FnOnce() -> T,
    ) -> T {
        recorded(self.satellite(), (&self.id(), self.call().as_ref()), name, choose)
    }
}

impl Process {
    /// [`choice`](fn@choice) for code that may run outside all controls, such as the
    /// beginning of `main`. There the order of choices under one name must be the same
    /// in every run.
    ///
    /// ```
    /// let ddbx = ddbx::init("inventory");
    /// let shelf = ddbx.choice("shelf", || std::env::var("SHELF").ok());
    /// # assert_eq!(shelf, None);
    /// ```
    pub fn choice<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        choose: impl FnOnce() -> T,
    ) -> T {
        match self.satellite().filter(|satellite| satellite.has_course()) {
            Some(satellite) if control::current().is_none() => {
                recorded(satellite, (&naming::outside(&satellite.name()), None), name, choose)
            }
            _ => choice(name, choose),
        }
    }
}

fn recorded<T: Serialize + DeserializeOwned>(
    satellite: &Handle,
    (control, call): (&ControlId, Option<&CallPath>),
    name: &str,
    choose: impl FnOnce() -> T,
) -> T {
    if IS_CHOOSING.get() {
        return choose();
    }
    // A name that cannot be one is no reason to stop the program.
    let name = ChoiceName::new(name).or_else(|_| ChoiceName::new(naming::clean(name)));
    let name = name.expect("a cleaned name");
    if let Some(value) = satellite.chosen(control, call, &name) {
        match options().deserialize(value.as_bytes()) {
            Ok(chosen) => {
                satellite.keep_choice(control, call, &name, || value);
                return chosen;
            }
            Err(why) => say(&name, "cannot be read from the recording", &why),
        }
    }
    let chosen = {
        let _choosing = Choosing::begin();
        choose()
    };
    satellite.keep_choice(control, call, &name, || written(&name, &chosen));
    chosen
}

thread_local! {
    static IS_CHOOSING: Cell<bool> = const { Cell::new(false) };
}

/// Until this is dropped, a choice is a part of another one: a replay does not come to
/// it, so it is not recorded.
struct Choosing;

impl Choosing {
    fn begin() -> Self {
        IS_CHOOSING.set(true);
        Self
    }
}

impl Drop for Choosing {
    fn drop(&mut self) {
        IS_CHOOSING.set(false);
    }
}

fn written<T: Serialize>(name: &ChoiceName, chosen: &T) -> ChoiceValue {
    let bytes = options().serialize(chosen).unwrap_or_else(|why| {
        say(name, "cannot be recorded, and a replay chooses anew", &why);
        UNWRITTEN.to_vec()
    });
    ChoiceValue::new(bytes).expect("no more than the limit")
}

fn options() -> impl Options {
    let limit = ChoiceValue::BYTES_MAX as u64;
    bincode::DefaultOptions::new().with_limit(limit).reject_trailing_bytes()
}

/// Says it once of each choice.
fn say(name: &ChoiceName, what: &str, why: &bincode::Error) {
    static SAID: Mutex<BTreeSet<ChoiceName>> = Mutex::new(BTreeSet::new());
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if said.len() < SAID_MAX && said.insert(name.clone()) {
        eprintln!("ddbx: the choice {name} {what}: {why}");
    }
}
