//! What is read from outside decides what happens, and tasks share things.

use std::sync::Arc;
use std::time::Duration;

use ddbx::sync::{Mutex, mpsc};
use tarpc::context;
use tarpc::tokio_serde::formats::Bincode;

use crate::family::BoardClient;
use crate::luck;
use crate::stage::Stage;

pub async fn play(stage: &Stage) {
    let channel = stage.connect("board", Bincode::default()).await;
    let board = BoardClient::from(stage.process.client(channel));
    let rounds = stage.process.choice("rounds", || fastrand::u32(2..5));
    println!("{rounds} rounds");
    let main = stage.process.spawn("main", async move {
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let (tell, mut told) = mpsc::channel(2);
        let players = (1..=3).map(|player| {
            let (board, seen, tell) = (board.clone(), seen.clone(), tell.clone());
            ddbx::spawn(&format!("player-{player}"), async move {
                for _ in 0..rounds {
                    luck(3).await;
                    let dots = ddbx::rand::range(1..7);
                    let waits = ddbx::choice("waits", fastrand::bool);
                    if waits {
                        ddbx::time::sleep(Duration::from_millis(1)).await;
                    }
                    for _ in 0..dots % 3 {
                        board.write(context::current(), player.to_string()).await.expect("answer");
                    }
                    let now = ddbx::time::now();
                    let odd =
                        now.duration_since(std::time::UNIX_EPOCH).expect("after").as_micros() % 2;
                    if odd == 1 {
                        board.write(context::current(), "odd".to_owned()).await.expect("answer");
                    }
                    seen.lock().await.push(format!("{player}:{dots}"));
                    tell.send((player, dots)).await.expect("somebody listens");
                }
            })
        });
        let players: Vec<_> = players.collect();
        drop(tell);
        while let Some((player, dots)) = told.recv().await {
            println!("player {player} has {dots}");
        }
        for player in players {
            player.await.expect("it ends");
        }
        println!("{:?}", seen.lock().await);
    });
    main.await.expect("it ends");
}
