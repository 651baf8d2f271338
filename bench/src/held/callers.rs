//! Whoever makes very many calls at once, over many connections.

use std::io;
use std::time::{Duration, Instant};

use clap::Args;
use futures::future::join_all;
use serde::{Deserialize, Serialize};
use tarpc::client::RpcError;
use tarpc::context;

use crate::peers::client::{channel, door, streams};
use crate::peers::runtimes::Runtimes;
use crate::peers::{Door, Flavor, Lane, PeerClient};

/// Who calls, and how often.
#[derive(Args)]
pub struct CallersArgs {
    /// Where the server is entered, as JSON
    doors: String,

    /// Over how many connections
    #[arg(long)]
    connections: usize,

    /// How many calls over each of them
    #[arg(long)]
    each: usize,

    /// How long each may take, in milliseconds
    #[arg(long)]
    deadline_ms: u64,
}

/// What became of all calls.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Answers {
    /// Those with the right answer.
    pub right: u64,
    pub wrong: u64,
    pub deadline_errors: u64,
    pub other_errors: u64,
    /// One of those, for people.
    pub error: Option<String>,
}

/// Calls once for every line of standard input, and says what became of it.
pub fn callers(args: &CallersArgs) -> io::Result<()> {
    let runtimes = Runtimes::start()?;
    let runtime = runtimes.of(Flavor::CurrentThread);
    let process = ddbx::init("callers");
    let doors: Vec<Door> = serde_json::from_str(&args.doors)?;
    let clients = runtime.block_on(async {
        let mut clients = Vec::new();
        for _ in 0..args.connections {
            let (stream, _) = streams(door(&doors, Flavor::CurrentThread, Lane::Wrapped)?).await?;
            clients.push(PeerClient::from(process.client(channel!(stream))));
        }
        io::Result::Ok(clients)
    })?;
    println!("ready");
    for line in io::stdin().lines() {
        line?;
        let call = |client: &PeerClient<ddbx::Client<_, _>>, number: usize| {
            let client = client.clone();
            let mut context = context::current();
            let allowed = Duration::from_millis(args.deadline_ms);
            tokio::spawn(async move {
                context.deadline = Instant::now() + allowed;
                let number = number as u64;
                (number, client.echo(context, number).await)
            })
        };
        let answers = runtime.block_on(async {
            let numbers = 0..args.each;
            let of_one = |client| numbers.clone().map(move |number| call(client, number));
            join_all(clients.iter().flat_map(of_one)).await
        });
        let mut all = Answers::default();
        for answer in answers {
            let (number, answer) = answer.map_err(io::Error::other)?;
            all.note(number, answer);
        }
        println!("{}", serde_json::to_string(&all)?);
    }
    Ok(())
}

impl Answers {
    fn note(&mut self, number: u64, answer: Result<u64, RpcError>) {
        match answer {
            Ok(answer) if answer == number => self.right += 1,
            Ok(_) => self.wrong += 1,
            Err(RpcError::DeadlineExceeded) => self.deadline_errors += 1,
            Err(error) => {
                self.other_errors += 1;
                self.error = Some(error.to_string());
            }
        }
    }
}
