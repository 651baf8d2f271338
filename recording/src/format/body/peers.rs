//! Who is who: notes name processes by their numbers.

use std::collections::BTreeMap;

use ddbx_protocol::{ProcessIndex, ProcessName};

/// How many are known. One that was forgotten is named by its number.
const PEERS_MAX: usize = 16 * 1024;

/// How many are found at once. Their numbers are drawn by lot, and two that fall on one place
/// are looked up by their names at every call: so there are many more places than a process
/// has to do with others.
const NEAR: usize = 256;

#[derive(Debug)]
pub(super) struct Peers {
    names: BTreeMap<ProcessIndex, ProcessName>,
    /// Some of those that were last used, with the numbers of their names.
    near: Box<[Option<(ProcessIndex, usize)>; NEAR]>,
}

impl Peers {
    /// A process has this name. False if that was known.
    pub(super) fn meet(&mut self, process: ProcessIndex, name: &ProcessName) -> bool {
        if self.names.get(&process) == Some(name) {
            return false;
        }
        if self.names.len() >= PEERS_MAX && !self.names.contains_key(&process) {
            self.names.pop_first();
        }
        self.names.insert(process, name.clone());
        self.forget_numbers();
        true
    }

    /// The name of a process.
    pub(super) fn name(&self, process: ProcessIndex) -> ProcessName {
        let unknown = || ProcessName::new(process.to_string()).expect("a letter and digits");
        self.names.get(&process).cloned().unwrap_or_else(unknown)
    }

    /// The number of its name, if it was lately used.
    #[inline]
    pub(super) fn number(&self, process: ProcessIndex) -> Option<usize> {
        let (near, number) = self.near[place(process)]?;
        (near == process).then_some(number)
    }

    /// Its name has this number.
    pub(super) fn has_number(&mut self, process: ProcessIndex, number: usize) {
        self.near[place(process)] = Some((process, number));
    }

    /// Names are defined anew.
    pub(super) fn forget_numbers(&mut self) {
        self.near.fill(None);
    }
}

impl Default for Peers {
    fn default() -> Self {
        Self { names: BTreeMap::new(), near: Box::new([None; NEAR]) }
    }
}

#[inline]
fn place(process: ProcessIndex) -> usize {
    process.0 as usize % NEAR
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_the_name_that_it_was_last_met_under() {
        let mut peers = Peers::default();
        let (here, there) = (ProcessIndex(1), ProcessIndex(1 + NEAR as u64));
        let name = |text: &str| ProcessName::new(text).unwrap();
        assert_eq!(peers.name(here).as_str(), "p1");
        assert!(peers.meet(here, &name("shop")) && !peers.meet(here, &name("shop")));
        peers.has_number(here, 7);
        assert_eq!((peers.number(here), peers.number(there)), (Some(7), None));
        assert!(peers.meet(here, &name("shop#2")));
        assert_eq!((peers.name(here), peers.number(here)), (name("shop#2"), None));
    }

    #[test]
    fn no_more_are_known_than_there_is_room_for() {
        let mut peers = Peers::default();
        for nth in 0..=PEERS_MAX as u64 {
            peers.meet(ProcessIndex(nth), &ProcessName::new(format!("n{nth}")).unwrap());
        }
        assert_eq!(peers.names.len(), PEERS_MAX);
        assert_eq!(peers.name(ProcessIndex(PEERS_MAX as u64)).as_str(), "n16384");
        assert_eq!(peers.name(ProcessIndex(0)).as_str(), "p0");
    }
}
