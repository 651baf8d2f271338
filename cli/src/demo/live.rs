//! The shop on the screen, for a person to stop it.

use std::io::IsTerminal as _;
use std::time::Duration;

use ddbx_protocol::link::{BindError, Keys};

use super::DemoError;
use super::debugger::Debugger;
use super::shop::Shop;

/// What the session is called, if that name is free.
const NAME: &str = "demo";

/// How often it is looked whether somebody has died.
const LOOK: Duration = Duration::from_millis(500);

/// Whether there is a person.
pub(super) fn is_possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

pub(super) async fn on_the_screen() -> Result<(), DemoError> {
    let debugger = match Debugger::start_named(NAME).await {
        Err(DemoError::Bind(BindError::Running(_))) => {
            Debugger::start_named(&format!("{NAME}-{}", std::process::id())).await?
        }
        started => started?,
    };
    anstream::eprintln!("opening a shop …");
    let mut shop = Shop::new(Some(debugger.address()))?;
    shop.open().await?;
    let looks = ddbx_tui::Options {
        address: debugger.address().clone(),
        keys: Keys::default(),
        watch_only: false,
        printed: None,
    };
    let goes_on = async {
        loop {
            shop.wait(LOOK).await?;
        }
    };
    tokio::select! {
        looked = ddbx_tui::run(looks) => looked.map_err(DemoError::Screen)?,
        died = goes_on => return died,
    }
    anstream::eprintln!(
        "the shop is closed; `ddbx demo --headless` shows what a stop does with ddbx and without"
    );
    Ok(())
}
