//! No broadcast: a hold costs messages in proportion to those it concerns.

use ddbx_tests::simulation::scale::measure;

#[test]
fn only_those_concerned_hear_of_a_hold() {
    let alone = measure(5, 5);
    assert!(alone.heard == 5 && alone.messages["hold"] == 1, "{:?}", alone.messages);
    for processes in [100, 1_000] {
        let among_others = measure(processes, 5);
        assert_eq!(among_others.heard, 5);
        assert_eq!(among_others.messages, alone.messages);
        assert!(among_others.steady.is_empty(), "{:?}", among_others.steady);
        assert_eq!(among_others.rpcs, processes / 5 * 16);
    }
}
