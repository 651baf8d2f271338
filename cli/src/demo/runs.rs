//! The same shop three times: nobody stops, ddbx stops inventory, SIGSTOP stops it.

use std::time::Duration;

use ddbx_protocol::link::Address;
use rustix::process::Signal;
use tokio::time::Instant;

use super::debugger::{Around, Debugger};
use super::report::Run;
use super::shop::Shop;
use super::story::Story;
use super::{DemoArgs, DemoError};

const STOPPED: &str = "inventory";
const BREAKPOINT: &str = "inventory:Inventory.reserve@arrive";

/// How long customers buy before the stop, and after it.
const BEFORE: Duration = Duration::from_millis(1_000);
const AFTER: Duration = Duration::from_millis(1_500);

/// Nobody stops.
pub(super) async fn baseline(args: &DemoArgs, story: &Story) -> Result<Run, DemoError> {
    story.chapter("1. Nobody stops")?;
    in_a_shop(None, story, async |shop| {
        shop.wait(BEFORE + args.hold() + AFTER).await?;
        let run = Run::new(shop.close().await?, Duration::ZERO);
        story.run(&run)?;
        Ok(run)
    })
    .await
}

/// A breakpoint stops inventory.
pub(super) async fn with_ddbx(args: &DemoArgs, story: &Story) -> Result<(Run, Around), DemoError> {
    story.chapter("2. ddbx stops inventory")?;
    let debugger = Debugger::start().await?;
    in_a_shop(Some(debugger.address()), story, async |shop| {
        let names: Vec<String> = shop.names().map(str::to_owned).collect();
        let under_way = || debugger.is_under_way(&names);
        shop.until("all processes take part in the session", under_way).await?;
        shop.wait(BEFORE).await?;
        let hit = |hit: &_| story.hit(hit, args.hold());
        let stop = debugger.stop_at(BREAKPOINT, args.hold(), hit).await?;
        story.stop(&stop)?;
        shop.wait(AFTER).await?;
        let run = Run::new(shop.close().await?, stop.held);
        story.run(&run)?;
        Ok((run, stop.around))
    })
    .await
}

/// The system stops inventory, as any other debugger would have it do.
pub(super) async fn without_ddbx(args: &DemoArgs, story: &Story) -> Result<Run, DemoError> {
    story.chapter("3. SIGSTOP stops inventory, without ddbx")?;
    in_a_shop(None, story, async |shop| {
        shop.wait(BEFORE).await?;
        let began = Instant::now();
        shop.signal(STOPPED, Signal::STOP)?;
        shop.wait(args.hold()).await?;
        let held = began.elapsed();
        shop.signal(STOPPED, Signal::CONT)?;
        shop.wait(AFTER).await?;
        let run = Run::new(shop.close().await?, held);
        story.run(&run)?;
        Ok(run)
    })
    .await
}

async fn in_a_shop<T>(
    session: Option<&Address>,
    story: &Story,
    happens: impl AsyncFnOnce(&mut Shop) -> Result<T, DemoError>,
) -> Result<T, DemoError> {
    let mut shop = Shop::new(session)?;
    let result = match shop.open().await {
        Ok(()) => happens(&mut shop).await,
        Err(error) => Err(error),
    };
    story.printed(&shop, result.is_err())?;
    result
}
