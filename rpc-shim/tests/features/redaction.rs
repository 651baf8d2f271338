//! What nobody shall see, nobody sees.

use serde_json::json;

use crate::services::{Actor, LabClient, MS, Order, connect, within};

const SECRET: &str = "4111";

fn order(item: u32, gifts: Vec<Order>) -> Order {
    Order { item, card: SECRET.to_owned(), gifts }
}

#[tokio::test]
async fn values_are_hidden_at_any_depth() {
    let session = ddbx::test::session().await;
    let (client, lab) = (session.process("client"), session.process("lab"));
    let (client, lab) = (client.redact(&["card"]), lab.redact(&["other", "card"]));
    let lab = connect!(LabClient, client, lab, Actor::echo());
    let hidden = |item, gifts| json!({ "item": item, "card": "(redacted)", "gifts": gifts });
    let expected = hidden(1, json!([hidden(2, json!([hidden(3, json!([]))]))]));
    for (place, shows_result) in [
        ("client:Lab.pay@call", false),
        ("lab:Lab.pay@arrive", false),
        ("lab:point(paying)", false),
        ("lab:Lab.pay@return", true),
        ("client:Lab.pay@resume", true),
    ] {
        let hit = session.breakpoint(place);
        let client = lab.clone();
        let wanted = order(1, vec![order(2, vec![order(3, vec![])])]);
        let (paid, sent) = (wanted.clone(), wanted);
        let call = tokio::spawn(async move { client.pay(within(20_000 * MS), sent).await });
        let held = hit.next().await;
        let hold = session.holds().remove(0);
        assert_eq!(hold.args.unwrap()["order"], expected, "{place}");
        assert_eq!(hold.result, shows_result.then(|| expected.clone()), "{place}");
        held.resume();
        assert_eq!(call.await.unwrap().unwrap(), paid, "the program has its own");
    }
}

/// Conditions cannot find them out either.
#[tokio::test]
async fn conditions_do_not_see_them() {
    let session = ddbx::test::session().await;
    let lab = session.process("lab").redact(&["card"]);
    let lab = connect!(LabClient, session.process("client"), lab, Actor::echo());
    let _by_value = session.breakpoint_if("lab:*@*", "args.order.card == '4111'");
    let _watched = session.breakpoint_if("lab:point(paying)", "watch.card == '4111'");
    let _nested = session.breakpoint_if("lab:point(paying)", "watch.paid.card == '4111'");
    lab.pay(within(20_000 * MS), order(1, vec![])).await.unwrap();
    session.assert_nothing_was_held();
    let both = "watch.card == '(redacted)' && watch.paid.card == '(redacted)'";
    let hit = session.breakpoint_if("lab:point(paying)", both);
    let call = tokio::spawn(async move { lab.pay(within(20_000 * MS), order(1, vec![])).await });
    hit.next().await.resume();
    call.await.unwrap().unwrap();
}
