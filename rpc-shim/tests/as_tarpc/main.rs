//! A wrapped service is like a plain one: what tarpc's own tests and examples show
//! of tarpc, in our words, with the same results against tarpc alone, without a
//! session, in a session, and with a breakpoint of a second on every method.
//!
//! Every scenario runs on every kind of runtime, with and without an OpenTelemetry
//! subscriber. All of them run at once: nearly all of their time is waiting.

#![allow(clippy::unwrap_used, missing_docs)]

mod examples;
mod functional;
mod holds;
mod hooks;
mod lifecycle;
mod limits;
mod opentelemetry;
mod pubsub;
mod settings;
mod stubs;
mod transports;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::runtime::Builder;

/// No scenario takes nearly as long.
const TIME_MAX: Duration = Duration::from_secs(60);

/// Names a scenario of a module, and makes it.
macro_rules! scenarios {
    ($($module:ident: $($name:ident),+;)+) => {
        vec![$($((
            concat!(stringify!($module), "::", stringify!($name)),
            Box::pin($module::$name()) as Pin<Box<dyn Future<Output = ()> + Send>>,
        )),+),+]
    };
}

async fn run_all() {
    let scenarios = scenarios! {
        functional: a_function_as_a_service, one_after_the_other, made_first_and_awaited_later,
            joined, an_error_cancels_the_others, a_counter, a_dropped_channel_aborts_its_requests,
            types_of_ones_own, a_few_and_a_large_one;
        examples: readme, squeezed, custom_transport, tracing;
        holds: one_context_for_several_calls, one_context_for_several_calls_in_a_handler,
            a_handler_that_waits_for_one_that_is_held, a_queue_in_the_client,
            a_connection_lost_after_a_hold;
        hooks: before, before_outside, before_a_list, after, before_and_after, a_shorter_deadline,
            another_deadline_outside;
        lifecycle: what_a_handler_sees, a_slow_handler, a_deadline_ends_the_handler, past_deadline,
            a_dropped_call, a_timeout_of_the_callers, select, a_panic, a_server_that_went,
            a_client_that_went, errors_of_the_service;
        limits: concurrent_requests, requests_in_flight, channels_per_key;
        pubsub: to_all, to_who_is_left;
        stubs: round_robin, consistent_hash, retry, retry_in_vain, retry_in_a_handler;
        transports: in_memory, in_memory_bounded, tcp_bincode, tcp_json, unix_bincode, unix_json;
    };
    let mut running = Vec::new();
    for (name, scenario) in scenarios {
        running.push((name, tokio::spawn(tokio::time::timeout(TIME_MAX, scenario))));
        // Starting is work: all at once they would be late for reasons of their own.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut failed = Vec::new();
    for (name, scenario) in running {
        match scenario.await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => failed.push(format!("{name} does not end")),
            Err(_) => failed.push(name.to_owned()),
        }
    }
    assert!(failed.is_empty(), "failed: {failed:?}");
}

/// Runs everything on this kind of runtime, with a subscriber or without.
fn run_on(mut runtime: Builder, subscriber: Option<tracing::Dispatch>) {
    let _here = subscriber.as_ref().map(tracing::dispatcher::set_default);
    let is_traced = subscriber.is_some();
    if let Some(subscriber) = subscriber {
        runtime.on_thread_start(move || {
            // For as long as the thread lives.
            std::mem::forget(tracing::dispatcher::set_default(&subscriber));
        });
    }
    runtime.enable_all().build().unwrap().block_on(async {
        let current_context = tokio::spawn(opentelemetry::current_context());
        run_all().await;
        let expected = [
            "in time: true".to_owned(),
            "nested in time: true".to_owned(),
            format!("same trace: {is_traced}"),
            format!("same deadline: {is_traced}"),
            "too late: true".to_owned(),
        ];
        assert_eq!(current_context.await.unwrap(), expected);
    });
}

/// Runs everything on both kinds of runtime at once.
fn run_on_both(subscriber: Option<tracing::Dispatch>) {
    let mut many_threads = Builder::new_multi_thread();
    many_threads.worker_threads(2);
    let on_many = {
        let subscriber = subscriber.clone();
        thread::spawn(move || run_on(many_threads, subscriber))
    };
    run_on(Builder::new_current_thread(), subscriber);
    on_many.join().unwrap();
}

/// `tracing` remembers which spans nobody wants, and asks only the subscriber of the
/// thread that comes first: threads with a subscriber and threads without one cannot
/// run at the same time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

#[test]
fn without_opentelemetry() {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    run_on_both(None);
}

#[test]
fn with_opentelemetry() {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    run_on_both(Some(opentelemetry::subscriber()));
}
