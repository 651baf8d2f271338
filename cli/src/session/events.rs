//! `ddbx events`.

use clap::Args;
use ddbx_protocol::Event;
use ddbx_protocol::control::{Notice, Reply, Request, What};

use super::holds::describe;
use super::processes::seconds;
use super::{SessionArgs, print, unexpected};
use crate::exit::Failure;
use crate::text::one_line;

/// Show what has happened in the session
///
/// Who joined and left, who stood still and went on, what was done to breakpoints and
/// processes; and while somebody follows, the events of the program itself: calls, returns, deadlines, points.
#[derive(Args)]
#[command(after_long_help = "\
Events of the program are collected only while somebody follows: otherwise a call costs
the debugger nothing.

Examples:
  ddbx events                 the last of what has happened
  ddbx events --follow        that, and what happens from now on, until Ctrl-C
  ddbx events -f --only inventory
                              what mentions inventory
  ddbx events -f --json       the same, one JSON object on each line

customer-4!3 is the third call that the control customer-4 makes.")]
pub(crate) struct EventsArgs {
    /// Go on with what happens from now on
    #[arg(long, short)]
    follow: bool,

    /// Only what mentions this: a process, a control, a method
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,

    #[command(flatten)]
    session: SessionArgs,
}

pub(crate) fn events(args: &EventsArgs) -> Result<(), Failure> {
    let mut client = args.session.connect()?;
    client.send(Request::Events { follow: args.follow })?;
    loop {
        match client.next()? {
            Some(Reply::Notice(notice)) => {
                let line = match args.session.json {
                    true => serde_json::to_string(&notice).map_err(std::io::Error::from)?,
                    false => line(&notice),
                };
                if args.only.as_ref().is_none_or(|only| line.contains(only.as_str())) {
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
