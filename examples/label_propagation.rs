//! Spreads two known labels over two rings that hang together by a weak tie.
//!
//!     cargo run --release -p megagrid-examples --example label_propagation

use megagrid::prelude::*;

vertex! {
    /// Shares of the labels, the weighted sum of the neighbours', and 1 where the label is known.
    struct Member { sync: [f32; 2], delta: [f32; 2], master: u8 }
}
program! { struct Labels { vertices: Member, edge: f32, worker: Max<f32>, global: Max<f32> } }

fn spread(from: Read<Member>, to: Add<Member>, weight: &f32) {
    to.delta[0] += *weight * from.sync[0];
    to.delta[1] += *weight * from.sync[1];
}

fn settle(member: Master<Member>, cx: &mut Context<Labels>) {
    let sum = member.delta[0] + member.delta[1];
    if *member.master == 0 && sum > 0.0 {
        let shares = member.delta.map(|share| share / sum);
        cx.worker.see((shares[0] - member.sync[0]).abs());
        *member.sync = shares;
    }
}

fn main() -> Result<(), Error> {
    let ring = |first: u32| (0..5).map(move |at| (first + at, first + (at + 1) % 5, 1.0));
    let ties = ring(0).chain(ring(5)).chain([(2, 7, 0.1)]);
    let friends = Edges::square(10, ties.flat_map(|(a, b, weight)| [(a, b, weight), (b, a, weight)]))?;

    let sequence =
        Sequence::new().exchange(spread).apply(Right, settle).global_sync(|change, now: &mut _| *now = change);
    let mut engine = Engine::<Labels>::new(&friends, sequence, &Settings::default())?;
    engine.init(Right, |id, member| {
        if id % 5 == 0 {
            member.sync[id / 5] = 1.0;
            *member.master = 1;
        }
    });
    engine.run_until(1000, |engine, _| Ok(engine.global().0 < 1e-6))?;

    for (id, shares) in engine.on(Right).iter().enumerate() {
        println!("member {id}: {:.3} and {:.3}", shares[0], shares[1]);
        assert!(shares[id / 5] > 0.5);
    }
    Ok(())
}

#[test]
fn it_spreads() {
    main().expect("the graph is good");
}
