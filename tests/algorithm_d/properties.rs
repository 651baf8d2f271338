//! Random executions: the two forms agree, and the promises hold. On a failure
//! proptest prints the shrunken case and the seed that repeats it.

use ddbx_central::logic::algorithm_d::{
    ExecutionIndex, Mode, Plan, PlanError, Program, plan, reference,
};
use ddbx_tests::executions::{Piece, free_form, nested, program, program_in_order};
use proptest::prelude::*;

use crate::invariants::{delayed, order_broken, violated};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6_000))]

    #[test]
    fn virtual_on_nested_calls(executions in nested(1)) {
        check_virtual(&executions)?;
    }

    #[test]
    fn virtual_on_free_form(executions in free_form(1)) {
        check_virtual(&executions)?;
    }

    #[test]
    fn strict_and_literal_on_nested_calls(executions in nested(0)) {
        check_strict(&executions)?;
        check_literal(&executions)?;
    }

    #[test]
    fn strict_and_literal_on_free_form(executions in free_form(0)) {
        check_strict(&executions)?;
        check_literal(&executions)?;
    }
}

fn check_virtual(executions: &[Vec<Piece>]) -> Result<(), TestCaseError> {
    let program = program(executions);
    let fast = plan(&program, Mode::Virtual).unwrap();
    prop_assert_eq!(
        amounts(&program, &fast),
        amounts(&program, &reference(&program, Mode::Virtual).unwrap())
    );
    let all = delayed(&program, &fast);
    prop_assert_eq!(order_broken(&all), None);
    check_least(&program, &fast, true)?;
    check_causes(&program, &fast)?;

    // The order in which the executions are given does not matter.
    let mut turned: Vec<_> =
        executions.iter().enumerate().map(|(i, chain)| (format!("E{}", i + 1), chain)).collect();
    turned.reverse();
    let other = program_in_order(&turned);
    let mut again = amounts(&other, &plan(&other, Mode::Virtual).unwrap());
    again.reverse();
    prop_assert_eq!(amounts(&program, &fast), again);
    Ok(())
}

fn check_strict(executions: &[Vec<Piece>]) -> Result<(), TestCaseError> {
    let program = program(executions);
    let fast = plan(&program, Mode::VirtualStrict).unwrap();
    let slow = reference(&program, Mode::VirtualStrict).unwrap();
    prop_assert_eq!(amounts(&program, &fast), amounts(&program, &slow));
    check_least(&program, &fast, false)
}

/// It ends, or says that it does not; and it never takes a breakpoint away.
fn check_literal(executions: &[Vec<Piece>]) -> Result<(), TestCaseError> {
    let program = program(executions);
    match plan(&program, Mode::Literal) {
        Ok(plan) => {
            for (index, execution) in (0..).map(ExecutionIndex).zip(program.executions()) {
                for (planned, fragment) in plan.fragments(&program, index).zip(&execution.fragments)
                {
                    prop_assert!(
                        planned.end >= planned.start + fragment.time + fragment.breakpoint
                    );
                }
            }
        }
        Err(error) => {
            let steps = 100 * (program.fragment_count() as u64 + 1) + 1;
            prop_assert_eq!(error, PlanError::Nontermination { steps });
        }
    }
    Ok(())
}

/// The constraints hold, and no propagated delay can be reduced by 1.
fn check_least(program: &Program, plan: &Plan, ties: bool) -> Result<(), TestCaseError> {
    let all = delayed(program, plan);
    prop_assert_eq!(violated(&all, ties), None);
    for k in 0..all.len() {
        for j in (0..all[k].len()).filter(|&j| all[k].propagated[j] > 0) {
            prop_assert!(all[k].rpc(j + 1), "delays stand only before RPC entries");
            let mut less = all.clone();
            less[k].propagated[j] -= 1;
            prop_assert!(violated(&less, ties).is_some(), "E{}#{} could wait less", k + 1, j + 1);
        }
    }
    Ok(())
}

/// A cause is another execution that really binds, with exactly that delay.
fn check_causes(program: &Program, plan: &Plan) -> Result<(), TestCaseError> {
    let all = delayed(program, plan);
    for k in 0..all.len() {
        for planned in plan.fragments(program, ExecutionIndex(k as u32)) {
            let Some(cause) = planned.cause else {
                prop_assert_eq!(planned.propagated, 0);
                continue;
            };
            let (i, f, j) =
                (cause.execution.0 as usize, cause.fragment.0 as usize, planned.index.0 as usize);
            prop_assert_ne!(i, k);
            prop_assert_eq!(cause.process.0, all[k].process[j + 1]);
            prop_assert!(all[i].servers.contains(&cause.process.0));
            prop_assert!(all[i].st[f + 1] <= all[k].st[j + 1]);
            prop_assert_eq!(all[i].delay_after(f), all[k].delay_after(j));
        }
    }
    Ok(())
}

fn amounts(program: &Program, plan: &Plan) -> Vec<Vec<u64>> {
    delayed(program, plan).into_iter().map(|execution| execution.propagated).collect()
}
