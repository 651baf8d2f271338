//! The satellite's driver, with a central and a shim that are played.

#![allow(clippy::unwrap_used)]

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ddbx_protocol::{
    Delay, FromCentral, FromSatellite, InFlight, Mode, Names, Open, Permit, ProcessIndex,
    ProcessName, RealTime, Stack, Status, StopId, StopReason, ToCentral, ToSatellite,
};
use ddbx_satellite::driver::{Handle, Report};
use ddbx_satellite::logic::strand::{Strand, StrandId};
use serde_json::{Map, Value};

const HERE: ProcessIndex = ProcessIndex(1);
const ENDS: StrandId = StrandId(7);

/// A shim with one control, which ends just after it was found to be inside.
#[derive(Default)]
struct EndsMeanwhile {
    satellite: OnceLock<Handle>,
    ending: Mutex<Option<JoinHandle<()>>>,
}

impl Report for EndsMeanwhile {
    fn inside(&self) -> Vec<Strand> {
        if self.ending.lock().unwrap().is_some() {
            return Vec::new();
        }
        let found = vec![Strand::new(ENDS, Stack::home(HERE), Delay::ZERO)];
        let satellite = self.satellite.get().unwrap().clone();
        let (tell, over) = channel();
        *self.ending.lock().unwrap() = Some(thread::spawn(move || {
            satellite.ended(ENDS);
            let _ = tell.send(());
        }));
        // Either its end is over at once, or it must wait for this to return.
        let _ = over.recv_timeout(Duration::from_millis(200));
        found
    }

    fn calls(&self) -> Vec<InFlight> {
        Vec::new()
    }

    fn status(&self) -> Status {
        Status::default()
    }

    fn names(&self, _: usize) -> Option<Names> {
        None
    }

    fn watched(&self) -> Map<String, Value> {
        Map::new()
    }
}

#[test]
fn who_ends_while_it_is_looked_up_is_forgotten() {
    let report = Arc::new(EndsMeanwhile::default());
    let name = ProcessName::new("lab").unwrap();
    let satellite = Handle::start(HERE, name.clone(), report.clone()).unwrap();
    assert!(report.satellite.set(satellite.clone()).is_ok());
    let inbox = satellite.inbox();
    let (tell, heard) = channel();
    let send = move |message| drop(tell.send(message));
    inbox.connected(Box::new(send)).unwrap();
    inbox.deliver(FromCentral::Welcome { name, start: 1, mode: Mode::Permit });
    // Somebody elsewhere stands still.
    let by = StopId { process: ProcessIndex(2), number: 1 };
    let clock = RealTime::default() - Delay::ZERO;
    let permit = Permit { open: Some(Open { clock, by }), ..Permit::default() };
    inbox.deliver(FromCentral::Says(ToSatellite::Permit(permit)));
    report.ending.lock().unwrap().take().unwrap().join().unwrap();
    let heard: Vec<_> = heard.try_iter().collect();
    let waits = |message: &_| match message {
        FromSatellite::Says(ToCentral::Stopped { number, reason, .. }) => {
            (*reason == StopReason::Inside).then_some(*number)
        }
        _ => None,
    };
    let number = heard.iter().find_map(waits).expect("it was found to wait inside");
    let gone = FromSatellite::Says(ToCentral::Gone { number, delay: Delay::ZERO });
    assert!(heard.contains(&gone), "and central hears of its end: {heard:#?}");
}
