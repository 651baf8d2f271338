//! A check that cannot fail is worth nothing: every clause of the rule is left
//! out in turn, and some checker must notice.

use ddbx_protocol::Safeguard;
use ddbx_tests::simulation::generate::Options;
use ddbx_tests::simulation::seeds::run;

#[test]
fn every_sabotage_is_caught() {
    for sabotage in Safeguard::ALL {
        let options = Options { sabotage: Some(sabotage), ..Options::default() };
        let tally = run(0..5_000, &options, true, |_| ());
        assert!(
            !tally.violations.is_empty(),
            "{sabotage} was not noticed in {} schedules",
            tally.schedules
        );
    }
}
