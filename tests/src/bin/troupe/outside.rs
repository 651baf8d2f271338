//! A main that has never heard of controls.

use tarpc::context;
use tarpc::tokio_serde::formats::Bincode;

use crate::family::BoardClient;
use crate::luck;
use crate::stage::Stage;

pub async fn call(stage: &Stage, only_two: bool) {
    let channel = stage.connect("board", Bincode::default()).await;
    let board = BoardClient::from(stage.process.client(channel));
    let write = |name: &str| {
        let (board, name) = (board.clone(), name.to_owned());
        async move {
            luck(3).await;
            board.write(context::current(), name).await.expect("an answer")
        }
    };
    if only_two {
        let (a, b) = tokio::join!(write("a"), write("b"));
        return println!("joined: {a} {b}");
    }
    println!("one after the other: {} {}", write("x").await, write("x").await);
    let (a, b, c) = tokio::join!(write("a"), write("b"), write("c"));
    println!("joined: {a} {b} {c}");
    let tasks: Vec<_> =
        (0..6).map(|number| tokio::spawn(write(&format!("task {number}")))).collect();
    for task in tasks {
        println!("spawned: {}", task.await.expect("it ends"));
    }
    // Nobody can tell these from each other: only how many there are.
    let same: Vec<_> = (0..4).map(|_| tokio::spawn(write("same"))).collect();
    let mut places = Vec::new();
    for task in same {
        places.push(task.await.expect("it ends"));
    }
    places.sort_unstable();
    println!("the same: {places:?}");
    println!("at last: {}", write("x").await);
}
