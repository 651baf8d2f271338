//! Events wait for their turns.

use ddbx_protocol::{Delay, MethodName, PointLabel};
use ddbx_recording::Moment;

use super::*;

fn control(name: &str) -> ControlId {
    ControlId::new(format!("p/{name}")).unwrap()
}

fn point(who: &str, label: &str) -> EventKind {
    EventKind::Point { control: control(who), call: None, label: PointLabel::new(label).unwrap() }
}

fn call(who: &str, nth: u32) -> CallId {
    CallId { control: control(who), path: CallPath::root(nth) }
}

fn script(kinds: &[EventKind]) -> Script {
    let moment = |(index, kind): (usize, &EventKind)| Moment {
        number: EventNumber(index as u64 + 1),
        at: RealTime::from_nanos(index as i64 * 1_000_000_000),
        delay: Delay::ZERO,
        kind: kind.clone(),
        payload: None,
    };
    Script::new(kinds.iter().enumerate().map(moment).map(Entry::Event))
}

fn place(script: &mut Script, kind: &EventKind) -> Place {
    match script.claim(kind) {
        Claim::At(place) => place,
        other => panic!("{kind:?}: {other:?}"),
    }
}

#[test]
fn everybody_waits_for_a_turn_and_is_free_at_the_end() {
    let [a, b] = [point("a", "x"), point("b", "x")];
    let mut script = script(&[a.clone(), b.clone(), a.clone()]);
    let second = place(&mut script, &b);
    assert!(!script.is_turn(second));
    let first = place(&mut script, &a);
    assert!(script.is_turn(first));
    assert_eq!(script.happens(first, &a), EventNumber(1));
    script.runs();
    assert!(!script.is_turn(second), "whoever passed first still runs");
    script.stands();
    assert!(script.is_turn(second));
    // It does not come after all, and then it does.
    script.put_back(second);
    assert_eq!(script.next().unwrap().kind, b);
    let again = place(&mut script, &b);
    assert_eq!(again, second);
    script.happens(again, &b);
    assert_eq!(script.claim(&b), Claim::Beyond);
    assert_eq!(script.claim(&point("b", "y")), Claim::Unheard);
    let next = script.next().unwrap();
    assert_eq!((next.number, next.took), (EventNumber(3), Duration::from_secs(2)));
    let last = place(&mut script, &a);
    script.happens(last, &a);
    assert!(script.is_over() && script.claim(&a) == Claim::Free);
    assert_eq!((script.count(), script.happens_beyond()), ((3, 3), EventNumber(4)));
}

#[test]
fn nothing_more_happens_where_the_process_ended() {
    let x = point("a", "x");
    let moment = Moment {
        number: EventNumber(1),
        at: RealTime::from_nanos(7),
        delay: Delay::ZERO,
        kind: x.clone(),
        payload: None,
    };
    let mut script = Script::new([Entry::Event(moment)]).to_the_end(BTreeSet::new());
    let first = place(&mut script, &x);
    script.happens(first, &x);
    assert!(script.is_over() && !script.is_free() && script.must_end());
    assert_eq!(script.claim(&x), Claim::Beyond);
    assert_eq!(script.lasted(), Duration::from_nanos(7));
}

#[test]
fn a_process_ends_when_nobody_works_for_it_any_more() {
    let ended = EventKind::Ended { control: control("a") };
    let moment = |(number, kind)| {
        let (at, delay) = (RealTime::default(), Delay::ZERO);
        Entry::Event(Moment { number: EventNumber(number), at, delay, kind, payload: None })
    };
    let events = [(1, point("a", "x")), (2, ended.clone())].map(moment);
    let mut script = Script::new(events).to_the_end([call("a", 1)].into());
    script.leaves(&call("a", 1));
    script.leaves(&call("a", 2));
    let first = place(&mut script, &point("a", "x"));
    assert!(script.is_turn(first), "it is not the last");
    script.happens(first, &point("a", "x"));
    let last = place(&mut script, &ended);
    assert!(!script.is_turn(last));
    script.is_back(&call("a", 1));
    assert!(script.is_turn(last), "nobody has handled the other one");
}

#[test]
fn calls_with_and_without_an_answer_are_told_apart_as_long_as_there_are_any() {
    let method = MethodName::new("S.get").unwrap();
    let sent =
        |nth| EventKind::CallSent { call: call("a", nth), method: method.clone(), content: 0 };
    let back = EventKind::ReturnArrived { call: call("a", 2), sent_as: None };
    let mut script = script(&[sent(1), sent(2), back.clone()]);
    assert_eq!(script.unanswered(), &[call("a", 1)].into());
    for kind in [sent(1), sent(2)] {
        let place = place(&mut script, &kind);
        script.happens(place, &kind);
    }
    assert!(script.is_answered(&call("a", 2)) && !script.is_answered(&call("a", 1)));
    let last = place(&mut script, &back);
    script.happens(last, &back);
    assert!(!script.is_answered(&call("a", 3)), "nobody knows");
}

#[test]
fn what_was_given_up_is_known_and_whether_it_arrived() {
    let method = MethodName::new("S.get").unwrap();
    let gives_up = |nth| EventKind::Cancelled { call: call("a", nth), end: End::Caller };
    let expires = |nth, end| EventKind::DeadlineExpired { call: call("a", nth), end };
    let arrived = EventKind::CallArrived { call: call("a", 1), method, sent_as: None };
    let kinds = [gives_up(1), expires(2, End::Caller), expires(3, End::Callee), arrived];
    assert_eq!(script(&kinds).given_up(), [call("a", 2)].into());
}

#[test]
fn what_cannot_wait_is_crossed_off_and_nobody_waits_for_what_may_not_come() {
    let gives_up = EventKind::Cancelled { call: call("a", 1), end: End::Caller };
    let [x, ended] = [point("a", "x"), EventKind::Ended { control: control("b") }];
    let mut script = script(&[gives_up.clone(), x.clone(), ended.clone()]);
    assert_eq!(script.next().unwrap().kind, x);
    for (kind, number) in [(&ended, 3), (&gives_up, 1)] {
        let place = script.claim_at_once(kind).unwrap();
        assert_eq!(script.happens(place, kind), EventNumber(number));
    }
    let place = place(&mut script, &x);
    script.happens(place, &x);
    assert!(script.is_over() && script.first_difference().is_none());
    assert_eq!(script.count(), (3, 3));
}

#[test]
fn another_departure_is_another_event() {
    let arrived = |number| EventKind::ReturnArrived {
        call: call("a", 1),
        sent_as: Some(ddbx_protocol::EventId {
            process: ddbx_protocol::ProcessName::new("q").unwrap(),
            number: EventNumber(number),
        }),
    };
    let mut script = script(&[arrived(7)]);
    let place = place(&mut script, &arrived(8));
    script.happens(place, &arrived(8));
    let differs = script.first_difference().unwrap();
    assert_eq!((&differs.expected, &differs.actual), (&arrived(7), &arrived(8)));
}

#[test]
fn what_turns_out_otherwise_than_it_came_is_another_event() {
    let [came, other] = [point("a", "x"), point("a", "y")];
    let mut script = script(&[came.clone(), came.clone()]);
    let first = place(&mut script, &came);
    script.turns_out(first, &came);
    script.happens(first, &came);
    assert!(script.first_difference().is_none());
    let second = place(&mut script, &came);
    script.turns_out(second, &other);
    script.happens(second, &other);
    let differs = script.first_difference().unwrap();
    assert_eq!((&differs.expected, &differs.actual), (&came, &other));
}

#[test]
fn a_message_is_looked_for_by_who_gets_it() {
    let got = |who: &str, nth, from: Option<&str>| EventKind::Entered {
        control: control(who),
        call: None,
        nth,
        what: Shared::Message,
        from: from.map(control),
    };
    let lock = EventKind::Entered {
        control: control("a"),
        call: None,
        nth: 3,
        what: Shared::Lock,
        from: None,
    };
    let first = got("a", 1, Some("z"));
    let mut script = script(&[first.clone(), got("a", 2, None), got("b", 1, Some("y")), lock]);
    let [a, b] = [control("a"), control("b")];
    assert_eq!(script.sender(&a, None, 1), Some(Some(&control("z"))));
    assert_eq!(script.sender(&a, None, 2), Some(None));
    assert_eq!(script.sender(&a, None, 3), None, "a lock is no message");
    assert_eq!(script.sender(&b, None, 1), Some(Some(&control("y"))));
    place(&mut script, &first);
    assert_eq!(script.sender(&a, None, 1), None, "somebody else gets it");
}

#[test]
fn a_call_that_dice_have_numbered_is_found_by_what_it_is() {
    let [get, put] = ["S.get", "S.put"].map(|name| MethodName::new(name).unwrap());
    let sent = |nth, method: &MethodName, content| EventKind::CallSent {
        call: call("a", nth),
        method: method.clone(),
        content,
    };
    let mut script = script(&[sent(1, &put, 7), sent(2, &get, 7), sent(3, &put, 8)]);
    let mut like = |kind| script.like(None, &kind);
    let root = |nth, is_same| Some(Like { path: CallPath::root(nth), is_same });
    // By method, by content, by both, and as it was counted.
    assert_eq!(like(sent(1, &get, 9)), root(2, false));
    assert_eq!(like(sent(1, &put, 8)), root(3, true));
    assert_eq!(like(sent(2, &put, 7)), root(1, true));
    assert_eq!(like(sent(3, &put, 9)), root(3, false));
    let other = MethodName::new("S.other").unwrap();
    assert_eq!(like(sent(9, &other, 7)), None);
    assert_eq!(script.like(Some(&CallPath::root(1)), &sent(1, &put, 7)), None);
}

/// What [`Script::like`] means: of all calls that are left and could be this one, the best.
fn like_by_looking_at_all(
    script: &Script,
    outer: Option<&CallPath>,
    counted: &EventKind,
) -> Option<Like> {
    let EventKind::CallSent { call: CallId { control, path }, method, content } = counted else {
        return None;
    };
    let is_same = |place: Place| matches!(&script.steps[place.index()].kind, EventKind::CallSent { content: c, .. } if c == content);
    let left = (0..script.steps.len()).map(Place::at).filter(|at| script.places.is_left(*at));
    let likes = left.filter_map(|place| match &script.steps[place.index()].kind {
        EventKind::CallSent { call, method: of, .. } => {
            let fits = of == method && call.control == *control && call.path.is_made_in(outer);
            fits.then_some((place, &call.path))
        }
        _ => None,
    });
    likes
        .min_by_key(|(place, like)| (!is_same(*place), *like != path, *place))
        .map(|(place, like)| Like { path: like.clone(), is_same: is_same(place) })
}

#[test]
fn calls_are_found_as_if_all_were_looked_at() {
    let methods = ["S.get", "S.put"].map(|name| MethodName::new(name).unwrap());
    let outers = [None, Some(CallPath::root(1)), Some(CallPath::root(2))];
    // All combinations, in an order without a pattern; every path is there once.
    let kinds: Vec<EventKind> = (0..60u32)
        .map(|nth| {
            let mixed = nth * 37 % 60;
            let outer = &outers[mixed as usize % 3];
            let path = outer.as_ref().map_or_else(|| CallPath::root(mixed), |o| o.child(mixed));
            EventKind::CallSent {
                call: CallId { control: control(["a", "b"][mixed as usize / 3 % 2]), path },
                method: methods[mixed as usize / 6 % 2].clone(),
                content: (mixed / 12) as u16,
            }
        })
        .collect();
    let mut script = script(&kinds);
    let mut found = 0;
    for (nth, kind) in kinds.iter().enumerate() {
        for asked in &kinds {
            for outer in &outers {
                for content in 0..6 {
                    let mut asked = asked.clone();
                    if let EventKind::CallSent { content: asked, .. } = &mut asked {
                        *asked = content;
                    }
                    let like = script.like(outer.as_ref(), &asked);
                    assert_eq!(like, like_by_looking_at_all(&script, outer.as_ref(), &asked));
                    found += usize::from(like.is_some());
                }
            }
        }
        let claimed = place(&mut script, kind);
        if nth % 3 == 0 {
            script.put_back(claimed);
        }
    }
    assert!(found > 1_000, "{found}");
}
