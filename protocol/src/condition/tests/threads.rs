//! The evaluator and its thread.

use std::sync::mpsc::{Receiver, channel};

use super::*;

fn ask(evaluator: &Evaluator, text: &str) -> Receiver<Result<bool, EvaluationError>> {
    let (send, receive) = channel();
    let condition = Condition::try_from(text.to_owned()).unwrap();
    evaluator.evaluate(&condition, facts(), move |answer| drop(send.send(answer)));
    receive
}

/// Keeps the thread of an evaluator busy until the returned sender is dropped.
fn block(evaluator: &Evaluator) -> std::sync::mpsc::Sender<()> {
    let (release, released) = channel::<()>();
    let (begun, begin) = channel();
    evaluator.evaluate(&Condition::check("true").unwrap(), facts(), move |_| {
        begun.send(()).unwrap();
        let _ = released.recv();
    });
    begin.recv().unwrap();
    release
}

#[test]
fn answers() {
    let evaluator = Evaluator::new();
    assert_eq!(ask(&evaluator, "args.qty == 7").recv().unwrap(), Ok(true));
    assert_eq!(ask(&evaluator, "args.qty == 8").recv().unwrap(), Ok(false));
    assert_eq!(ask(&evaluator, "result").recv().unwrap(), Err(EvaluationError::NoResult));
    let invalid = ask(&evaluator, "args.qty ==").recv().unwrap().unwrap_err();
    assert!(invalid.to_string().ends_with("\n             ^"), "{invalid}");
    // More conditions than are kept.
    for n in 0..600 {
        let answer = ask(&evaluator, &format!("args.qty == {n}")).recv().unwrap();
        assert_eq!(answer, Ok(n == 7));
    }
}

#[test]
fn an_answer_that_panics_ends_nothing() {
    let evaluator = Evaluator::new();
    let condition = Condition::check("true").unwrap();
    evaluator.evaluate(&condition, facts(), |_| std::panic::resume_unwind(Box::new("mine")));
    assert_eq!(ask(&evaluator, "args.qty == 7").recv().unwrap(), Ok(true));
}

#[test]
fn a_full_queue_answers_at_once() {
    let evaluator = Evaluator::new();
    let release = block(&evaluator);
    let waiting: Vec<_> = (0..1024).map(|_| ask(&evaluator, "true")).collect();
    assert_eq!(ask(&evaluator, "true").try_recv().unwrap(), Err(EvaluationError::Busy));
    drop(release);
    for answer in waiting {
        assert_eq!(answer.recv().unwrap(), Ok(true));
    }
}

#[test]
fn dropping_it_ends_the_thread() {
    /// Tells when the thread that it lives on ends.
    struct Tell(std::sync::mpsc::Sender<()>);
    impl Drop for Tell {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }
    thread_local!(static TELL: std::cell::RefCell<Option<Tell>> = const { std::cell::RefCell::new(None) });

    let evaluator = Evaluator::new();
    let (send, ended) = channel();
    evaluator.evaluate(&Condition::check("true").unwrap(), facts(), move |_| {
        TELL.with(|tell| *tell.borrow_mut() = Some(Tell(send)));
    });
    let release = block(&evaluator);
    let waiting = ask(&evaluator, "true");
    drop(evaluator);
    drop(release);
    assert_eq!(waiting.recv().unwrap(), Err(EvaluationError::Ended));
    ended.recv().unwrap();
}
