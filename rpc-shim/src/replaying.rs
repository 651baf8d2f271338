//! For tests: programs in which luck decides are recorded once and replayed many times.

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use ddbx_central::driver::Session;
use ddbx_protocol::EventKind;
use ddbx_recording::{Entry, Recording};
use futures::future::join_all;

use crate::course::Wanted;
use crate::process::Process;

/// Nothing here takes this long, unless it never ends.
const FOR_EVER: Duration = Duration::from_secs(60);

/// Nobody decides about this but luck, in every run anew.
pub(crate) async fn luck() {
    let micros = getrandom::u64().unwrap() % 3_000;
    tokio::time::sleep(Duration::from_micros(micros)).await;
}

/// Starts a control for each number, and waits for all of them.
pub(crate) async fn each<F: Future<Output = ()> + Send + 'static>(
    number: u32,
    run: impl Fn(u32) -> F,
) {
    let tasks = (0..number).map(|n| crate::spawn(&format!("task-{n}"), run(n)));
    join_all(tasks).await.into_iter().for_each(|ended| ended.unwrap());
}

pub(crate) fn recording(to: &Path) -> Wanted {
    Wanted { record: Some(to.to_owned()), ..Wanted::default() }
}

/// Runs a program once in a process.
pub(crate) async fn run<T, F>(wanted: &Wanted, program: impl FnOnce(Process) -> F) -> T
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let session = Session::start().unwrap();
    let process = Process::embedded("p", &session, wanted).unwrap();
    let ended = process.spawn("main", program(process.clone()));
    let output = tokio::time::timeout(FOR_EVER, ended).await.expect("it ends").unwrap();
    crate::flush().await.unwrap();
    output
}

/// What happened, in its order.
pub(crate) fn events(directory: &Path) -> Vec<EventKind> {
    let recording = Recording::open(directory).unwrap();
    let mut reader = recording.logs()[0].read().unwrap();
    let mut events = Vec::new();
    while let Some(recorded) = reader.read().unwrap() {
        if let Entry::Event(moment) = recorded.entry
            && !moment.kind.is_of_connection()
        {
            events.push((moment.number, moment.kind));
        }
    }
    events.sort_by_key(|(number, _)| *number);
    events.into_iter().map(|(_, kind)| kind.identity()).collect()
}

/// Records a program and replays it: it says the same each time, by the same events. If
/// luck decides about it, it says something else when it is recorded again.
pub(crate) async fn repeats<T, F>(
    replays: u32,
    depends_on_luck: bool,
    program: impl Fn(Process) -> F,
) where
    T: PartialEq + std::fmt::Debug + Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let directory = tempfile::tempdir().unwrap();
    let to = |name: String| directory.path().join(name);
    let first = to("first".to_owned());
    let recorded = run(&recording(&first), &program).await;
    let expected = events(&first);
    for nth in 0..replays {
        let again = to(format!("replay-{nth}"));
        let wanted = Wanted { replay: Some(first.clone()), ..recording(&again) };
        assert_eq!(run(&wanted, &program).await, recorded, "replay {nth}");
        assert_eq!(events(&again), expected, "replay {nth}");
    }
    let mut differs = !depends_on_luck;
    for nth in 0..10 {
        differs =
            differs || run(&recording(&to(format!("other-{nth}"))), &program).await != recorded;
    }
    assert!(differs, "luck does not decide, so nothing was shown");
}
