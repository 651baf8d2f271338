//! `ddbx events`.

use ddbx_protocol::Event;
use ddbx_protocol::control::{Notice, Reply, Request, What};
use ddbx_tui::words::Events;

use super::holds::describe;
use super::processes::seconds;
use super::{InSession, print, unexpected};
use crate::exit::Failure;
use crate::text::{escaped_json, one_line};

pub(crate) fn events(args: &InSession<Events>) -> Result<(), Failure> {
    let mut client = args.session.connect()?;
    client.send(Request::Events { follow: args.word.follow })?;
    loop {
        match client.next()? {
            Some(Reply::Notice(notice)) => {
                let line = match args.session.json {
                    true => {
                        let json = serde_json::to_string(&notice).map_err(std::io::Error::from)?;
                        escaped_json(&json)
                    }
                    false => line(&notice),
                };
                if args.word.only.as_ref().is_none_or(|only| line.contains(only.as_str())) {
                    print(&line)?;
                }
            }
            Some(Reply::End) | None => return Ok(()),
            Some(other) => return Err(unexpected(other)),
        }
    }
}

fn line(notice: &Notice) -> String {
    let what = match &notice.what {
        What::Joined(process) => format!("{} joins", one_line(process)),
        What::Left(process) => format!("{} leaves", one_line(process)),
        What::Stands(hold) => describe(hold),
        What::GoesOn { hold, process, held_ms } => {
            format!("hold {hold}: goes on in {}, after {}", one_line(process), seconds(*held_ms))
        }
        What::BreakpointSet(set) => {
            format!("breakpoint {} at {}", set.id, one_line(&set.wanted.spec))
        }
        What::Changed(view) => {
            let disabled = if view.enabled { "" } else { ", disabled" };
            format!("breakpoint {} is now at {}{disabled}", view.id, one_line(&view.wanted.spec))
        }
        What::Paused { process, paused } => {
            let what = if *paused { "is paused" } else { "is not paused any more" };
            format!("{} {what}", one_line(process))
        }
        What::Released(hold) => format!("hold {hold}: let go anyway"),
        What::BreakpointDeleted(id) => format!("breakpoint {id} is removed"),
        What::Event(event) => of_program(event),
        What::Missed(number) => format!("({number} were missed)"),
    };
    format!("{:>12}  {what}", seconds(notice.at_ms))
}

fn of_program(event: &Event) -> String {
    one_line(&format!("{}  {}", event.id, event.kind))
}
