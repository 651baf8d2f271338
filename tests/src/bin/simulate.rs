fn main() {
    use ddbx_tests::simulation::{checkers::*, generate::*};
    let a: Vec<String> = std::env::args().collect();
    let (from, to): (u64, u64) = (a[1].parse().unwrap(), a[2].parse().unwrap());
    let mut o = Options { faults: a.get(3).is_some_and(|x| x == "f"), ..Default::default() };
    if let Some(n) = a.get(4) {
        o.sabotage = ddbx_protocol::Safeguard::ALL.into_iter().find(|s| s.to_string() == *n);
    }
    let t = std::time::Instant::now();
    let mut bad = 0;
    let mut by: std::collections::BTreeMap<&str, (u64, u64)> = Default::default();
    let mut events = 0;
    let mut held = 0;
    for seed in from..to {
        let (p, s) = generate(seed, &o);
        let pair = Pair::run(&p, &s);
        events += pair.debugged.events.len();
        held += pair.debugged.holds;
        let v = check(&pair);
        if to - from == 1 {
            println!(
                "{p:#?}\n{s:#?}\n{}\n{}",
                ddbx_tests::simulation::picture::picture(&p, &pair.debugged, &pair.undisturbed),
                ddbx_tests::simulation::picture::picture(&p, &pair.undisturbed, &pair.debugged)
            );
        }
        for x in &v {
            let e = by.entry(x.checker).or_insert((0, seed));
            e.0 += 1;
            if bad < 12 {
                println!("{seed} {} {}", x.checker, x.what);
            }
        }
        bad += !v.is_empty() as u32;
    }
    println!("{bad} bad of {} {by:?} events {events} holds {held} {:?}", to - from, t.elapsed());
}
