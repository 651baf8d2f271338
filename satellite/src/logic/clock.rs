//! How clocks go on when something inside the program wakes a strand.

use ddbx_protocol::{Delay, RealTime, Safeguard, Safeguards, VirtualTime};

/// The delay of a strand that waited inside the program (for a response, a
/// lock, a branch) and is woken now.
///
/// Without the debugger it would have gone on when both it and what woke it
/// were there: at the later of the two clocks. Not with the greater of the two
/// delays: of two branches, one held for long but quick and one never held but
/// slow, the slow one ends the join, and on time.
pub fn wake(
    now: RealTime,
    wait_began: VirtualTime,
    woken_by: VirtualTime,
    delays: [Delay; 2],
    safeguards: &impl Safeguards,
) -> Delay {
    if safeguards.on(Safeguard::JoinTakesLatestClock) {
        now.delay_of(wait_began.max(woken_by))
    } else {
        delays[0].max(delays[1])
    }
}
