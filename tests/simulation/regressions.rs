//! Cases that the simulator found, made small and written down.

use ddbx_central::logic::Command;
use ddbx_protocol::Gate;
use ddbx_protocol::{Delay, PointLabel, ProcessIndex, Stack};
use ddbx_satellite::logic::Verdict;
use ddbx_satellite::logic::strand::{Strand, StrandId};

use crate::session::{MS, Session, stop};

/// A strand from 0 is held in 1 at the very moment at which another comes to its
/// gate in 0. When the user ends the hold, each finds the other standing at its
/// own delay: they must go together, and the second must not forget how long it
/// has stood.
#[test]
fn a_tie_with_a_hold_that_ends() {
    let mut session = Session::new(2, &[(0, 1)]);
    session.break_once(1);
    assert_eq!(session.event(1, 10, 0), Verdict::Stopped);
    assert_eq!(session.event(0, 11, 0), Verdict::Stopped);
    session.later(5 * MS);
    session.central.handle_user(Command::Continue(stop(1, 1)));
    session.settle();
    session.resumed.sort();
    let delay = Delay::from(5 * MS);
    assert_eq!(session.resumed, [(StrandId(10), delay), (StrandId(11), delay)]);
}

/// Central is lost while a strand is held and a timer of the same process waits
/// for it. Both go on at once; the timer must not be due before what it waited for.
#[test]
fn a_timer_that_waited_for_a_hold_when_central_is_lost() {
    let mut session = Session::new(1, &[]);
    session.break_once(0);
    assert_eq!(session.event(0, 10, 0), Verdict::Stopped);
    session.later(3 * MS);
    let stack = Stack::home(ProcessIndex(0));
    let timer = Strand::new(StrandId(11), stack, Delay::ZERO);
    let verdict = session.satellites[0].handle_event(session.now, &timer, &Gate::Deadline);
    assert_eq!(verdict, Verdict::Stopped);
    session.later(4 * MS);
    session.satellites[0].handle_lost(session.now);
    session.settle();
    let delays: Vec<_> = session.resumed.iter().map(|(_, delay)| *delay).collect();
    assert_eq!(delays[0], Delay::from(7 * MS));
    assert!(delays[1] >= delays[0], "its clock is not ahead of where the held one stood");
}

/// A strand comes in from outside while another is held: it comes just after the
/// held one, goes on with it, and with its delay.
#[test]
fn a_newcomer_while_somebody_is_held() {
    let mut session = Session::new(1, &[]);
    session.break_once(0);
    assert_eq!(session.event(0, 10, 0), Verdict::Stopped);
    session.later(20 * MS);
    let stack = Stack::home(ProcessIndex(0));
    let newcomer = Strand::new(StrandId(11), stack, Delay::ZERO);
    let gate = Gate::Point(PointLabel::new("here").unwrap());
    let verdict = session.satellites[0].handle_newcomer(session.now, &newcomer, &gate);
    assert_eq!(verdict, Verdict::Stopped);
    session.later(20 * MS);
    session.central.handle_user(Command::Continue(stop(0, 1)));
    session.settle();
    session.later(std::time::Duration::from_nanos(1));
    let delay = Delay::from(40 * MS);
    assert_eq!(session.resumed, [(StrandId(10), delay), (StrandId(11), delay)]);
}

/// 0 waits in 1 for who is held there, and 2 waits in 0 only for 0's strand. That
/// one is dropped: 2 was charged for its sake, and must keep that.
#[test]
fn a_stop_is_dropped_for_which_others_have_waited() {
    let mut session = Session::new(4, &[(0, 1), (2, 0), (3, 1)]);
    session.break_once(1);
    assert_eq!(session.event(1, 10, 3), Verdict::Stopped, "held");
    session.later(MS);
    assert_eq!(session.event(1, 11, 0), Verdict::Stopped, "waits for it");
    session.later(MS);
    assert_eq!(session.event(0, 12, 2), Verdict::Stopped, "waits for who waits");
    session.later(8 * MS);
    session.satellites[1].handle_drop(session.now, StrandId(11));
    session.settle();
    session.later(MS);
    session.later(MS);
    let (strand, delay) = session.resumed[0];
    assert_eq!(strand, StrandId(12));
    assert_eq!(delay, Delay::from(9 * MS), "as much as the dropped one had reached");
}

/// A process is cut off and comes back: those who call it do not announce that
/// again, and still what is held in a caller blocks it.
#[test]
fn who_comes_back_is_still_called_by_others() {
    let mut session = Session::new(2, &[(0, 1)]);
    session.central.handle_left(session.now, ProcessIndex(1));
    session.settle();
    session.central.handle_joined(session.now, ProcessIndex(1), &[], Delay::ZERO);
    session.settle();
    session.break_once(0);
    assert_eq!(session.event(0, 10, 0), Verdict::Stopped);
    session.later(MS);
    assert_eq!(session.event(1, 11, 0), Verdict::Stopped);
}

/// A satellite dials again before central has noticed its loss: those who wait for
/// what it held must not wait for ever.
#[test]
fn a_join_ends_what_was_held_before() {
    let mut session = Session::new(2, &[(0, 1)]);
    session.break_once(0);
    assert_eq!(session.event(0, 10, 0), Verdict::Stopped);
    session.later(MS);
    assert_eq!(session.event(1, 11, 0), Verdict::Stopped);
    session.later(MS);
    session.central.handle_joined(session.now, ProcessIndex(0), &[ProcessIndex(1)], Delay::ZERO);
    session.settle();
    assert_eq!(session.resumed, [(StrandId(11), Delay::from(2 * MS))]);
}

/// Who goes on because the one it waited for has vanished still stops at its own
/// breakpoint, and a breakpoint that stops only once is not planted again.
#[test]
fn breakpoints_survive_a_loss() {
    let mut session = Session::new(2, &[(0, 1)]);
    session.break_once(0);
    assert_eq!(session.event(0, 10, 0), Verdict::Stopped);
    session.break_once(1);
    session.later(MS);
    assert_eq!(session.event(1, 11, 0), Verdict::Stopped, "waits");
    session.central.handle_left(session.now, ProcessIndex(0));
    session.settle();
    assert_eq!(session.resumed, []);
    assert_eq!(session.satellites[1].held_by_user(), 1, "at its breakpoint now");
    session.central.handle_joined(session.now, ProcessIndex(0), &[ProcessIndex(1)], Delay::ZERO);
    let planted = std::iter::from_fn(|| session.central.poll_output(session.now));
    let planted = planted.filter(|(_, m)| matches!(m, ddbx_protocol::ToSatellite::Plant(_)));
    assert_eq!(planted.count(), 0, "both have been hit");
}

/// What a satellite has met alone, it tells when it is attached again.
#[test]
fn delays_met_alone_are_told() {
    let mut session = Session::new(1, &[]);
    session.satellites[0].handle_lost(session.now);
    let stack = Stack::home(ProcessIndex(0));
    let late = Strand::new(StrandId(1), stack, Delay::from(MS));
    let gate = Gate::Point(PointLabel::new("here").unwrap());
    session.satellites[0].handle_event(session.now, &late, &gate);
    session.satellites[0].handle_attached(session.now);
    let told = session.satellites[0].poll_output();
    let raised = ddbx_protocol::ToCentral::Raised { floor: Delay::from(MS) };
    assert_eq!(told, Some(ddbx_satellite::logic::Output::Send(raised)));
}
