//! Everybody who stands still can say why: because of whom, through which
//! process, and how long still at the least.

use ddbx_central::logic::Command;
use ddbx_protocol::{Delay, ProcessIndex, StopReason};
use ddbx_satellite::logic::Verdict;
use ddbx_satellite::logic::strand::StrandId;

use crate::session::{MS, Session, stop};

/// 0 and 1 are clients of 2; 3 is a client of 1 only. A strand from 0 is held in
/// 2; so one from 1 waits in 2, and therefore one from 3 waits in 1.
#[test]
fn a_chain_of_reasons_leads_to_the_users_hold() {
    let mut session = Session::new(4, &[(0, 2), (1, 2), (3, 1)]);
    session.break_once(2);
    assert_eq!(session.event(2, 10, 0), Verdict::Stopped);
    session.later(3 * MS);
    assert_eq!(session.event(2, 11, 1), Verdict::Stopped);
    session.later(4 * MS);
    assert_eq!(session.event(1, 12, 3), Verdict::Stopped);
    session.later(10 * MS);

    let (held, waits) = (stop(2, 1), stop(2, 2));
    let why = session.satellites[2].why(session.now, StrandId(11)).unwrap();
    assert_eq!((why.reason, why.by, why.open), (StopReason::Delay, Some(held), true));
    assert_eq!((why.through, why.at_least), (ProcessIndex(2), 3 * MS));

    // 3 does not reach 2 but through 1: it waits for who waits.
    let why = session.satellites[1].why(session.now, StrandId(12)).unwrap();
    assert_eq!((why.by, why.through), (Some(waits), ProcessIndex(1)));
    assert_eq!(why.at_least, 4 * MS);
    let chain = session.central.why(stop(1, 1));
    let stops: Vec<_> = chain.iter().map(|because| because.stop).collect();
    assert_eq!(stops, [stop(1, 1), waits, held]);
    assert_eq!(session.central.at_least(session.now, &chain), Some(7 * MS));
    let chain = session.central.why(waits);
    assert_eq!(session.central.at_least(session.now, &chain), Some(3 * MS));
    let chain = session.central.why(held);
    assert_eq!(session.central.at_least(session.now, &chain), None, "only the user knows");
    assert!(session.central.why(held)[0].reason.is_users());

    // The user lets it go on: the others follow 3 and 7 ms later, all with the
    // same delay.
    session.central.handle_user(Command::Continue(held));
    session.settle();
    let why = session.satellites[1].why(session.now, StrandId(12)).unwrap();
    assert_eq!((why.open, why.at_least), (false, 7 * MS));
    for passed in 0..7 {
        // What central says is what is left, and nobody goes on before that.
        let chain = session.central.why(stop(1, 1));
        let left = session.central.at_least(session.now, &chain);
        assert_eq!(left, Some((7 - passed) * MS), "after {passed} ms");
        assert!(!session.resumed.iter().any(|(strand, _)| *strand == StrandId(12)));
        session.later(MS);
    }
    let delay = Delay::from(17 * MS);
    let resumed = [(StrandId(10), delay), (StrandId(11), delay), (StrandId(12), delay)];
    assert_eq!(session.resumed, resumed);
}

#[test]
fn what_the_user_forces_goes_on_and_is_remembered() {
    let mut session = Session::new(1, &[]);
    session.break_once(0);
    assert_eq!(session.event(0, 10, 0), Verdict::Stopped);
    session.later(MS);
    assert_eq!(session.event(0, 11, 0), Verdict::Stopped);
    session.later(MS);
    assert!(session.central.is_order_guaranteed());
    session.central.handle_user(Command::Force(stop(0, 2)));
    session.settle();
    assert_eq!(session.resumed, [(StrandId(11), Delay::from(MS))]);
    assert!(!session.central.is_order_guaranteed());
}

#[test]
fn a_paused_process_lets_nobody_pass() {
    let mut session = Session::new(2, &[]);
    session.central.handle_user(Command::Pause(ProcessIndex(0), true));
    session.settle();
    assert_eq!(session.event(0, 10, 0), Verdict::Stopped);
    assert_eq!(session.event(1, 11, 1), Verdict::Go(Delay::ZERO), "not concerned");
    let why = session.satellites[0].why(session.now, StrandId(10)).unwrap();
    assert_eq!(why.reason, StopReason::Process);
    session.later(5 * MS);
    session.central.handle_user(Command::Pause(ProcessIndex(0), false));
    session.settle();
    assert_eq!(session.resumed, [(StrandId(10), Delay::from(5 * MS))]);
}
