//! The small cases that show what is wrong with the algorithm as printed, and
//! what an implementation is likely to get wrong. Each asserts what it shows.

use ddbx_central::logic::algorithm_d::{Mode, PlanError, plan};
use ddbx_tests::executions::short;

use crate::invariants::{Delayed, delayed, order_broken, violated};

fn planned(case: &str, mode: Mode) -> Vec<Delayed> {
    let program = short(case);
    let all = delayed(&program, &plan(&program, mode).unwrap());
    if mode == Mode::Virtual {
        assert_eq!(order_broken(&all), None, "{case}");
        assert_eq!(violated(&all, true), None, "{case}");
    }
    all
}

/// Delayed start of the fragment with this number in each execution.
fn starts(all: &[Delayed], number: usize) -> Vec<u64> {
    all.iter().filter(|e| e.len() >= number).map(|e| e.sb(number - 1)).collect()
}

#[test]
fn literal_reverses_two_clients_of_one_server() {
    let case = "A6+4 S5 / B7 S1+2 / C9 S1";
    assert_eq!(starts(&planned(case, Mode::Literal), 2), [12, 11, 15]);
    let fixed = starts(&planned(case, Mode::Virtual), 2);
    assert!(fixed.is_sorted_by(|a, b| a < b), "{fixed:?}");
}

#[test]
fn literal_does_not_terminate() {
    let case = "B7 A1 / B1+8 A3+1 B1 / A2 B1+1 A3 / A9 B1";
    let fragments = 10;
    assert_eq!(
        plan(&short(case), Mode::Literal).unwrap_err(),
        PlanError::Nontermination { steps: 100 * (fragments + 1) + 1 }
    );
    planned(case, Mode::Virtual);
}

#[test]
fn literal_reverses_a_tie_at_entry() {
    let case = "A1+1 S1 / B1 S1";
    let printed = starts(&planned(case, Mode::Literal), 2);
    assert!(printed[1] < printed[0], "{printed:?}");
    let fixed = starts(&planned(case, Mode::Virtual), 2);
    assert_eq!(fixed[0], fixed[1]);
}

#[test]
fn literal_enters_a_server_that_is_suspended_on_a_hand_over_tie() {
    let case = "S1+1 / B1 S1";
    let printed = planned(case, Mode::Literal);
    assert!(printed[1].sb(1) < printed[0].end(0));
    let fixed = planned(case, Mode::Virtual);
    assert!(fixed[1].sb(1) >= fixed[0].end(0));
}

#[test]
fn literal_overlaps_two_in_a_single_threaded_server() {
    let case = "H11 S1+2 / K2+4 S8 T2 / L13 H1 T1";
    let overlap = |all: &[Delayed]| {
        let (a, b) = (&all[0], &all[1]);
        a.sb(1) < b.end(1) && b.sb(1) < a.end(1)
    };
    let undelayed = planned("H11 S1 / K2 S8 T2 / L13 H1 T1", Mode::Virtual);
    assert!(!overlap(&undelayed));
    assert!(overlap(&planned(case, Mode::Literal)));
    assert!(!overlap(&planned(case, Mode::Virtual)));
}

#[test]
fn literal_delays_more_than_needed() {
    let case = "A1+2 C1 / C2+3";
    let delay_at_entry = |mode| planned(case, mode)[0].delay_after(0);
    assert_eq!(delay_at_entry(Mode::Literal), 3);
    assert_eq!(delay_at_entry(Mode::Virtual), 2);
}

/// E2 is first held up by E1's 5, and when that is over by E3's 20.
#[test]
fn a_wait_must_be_judged_again_when_it_ends() {
    let all = planned("A5+5 S9 / B10 S1 / C8+20 S1", Mode::Virtual);
    assert_eq!(all[1].delay_after(0), 20);
}

/// E1 is suspended in S, back in A it is still 10 behind, and so E2 must not
/// enter T before it, though nothing was ever suspended in A or T.
#[test]
fn the_clock_travels_with_the_control() {
    let all = planned("A1 S1+10 A1 T1 / B5 T1", Mode::Virtual);
    assert_eq!(all[1].delay_after(0), 10);
    assert!(all[0].sb(3) < all[1].sb(1));
}

/// E2 will not enter B again, but it is in B: E1 must wait for it.
#[test]
fn being_in_a_process_counts() {
    let all = planned("A2 B1 / B1+2", Mode::Virtual);
    assert_eq!(all[0].delay_after(0), 2);
}
