use megagrid_partition::*;
use std::time::Instant;
fn main() {
    for degree in [false, true] {
        let n = 4usize << 20;
        let m = 64usize << 20;
        let mk = |s: u64| -> Vec<u32> {
            let mut r = SplitMix::new(s, 0);
            (0..m)
                .map(|_| if degree { ((r.unit().powi(4)) * n as f64) as u32 } else { r.below(n as u64) as u32 })
                .collect()
        };
        let (l, r) = (mk(1), mk(2));
        let t = Instant::now();
        let d = count_degrees(&r, n);
        println!("count {:?}", t.elapsed());
        let t = Instant::now();
        let rl = Relabeling::by_degrees(&d, &d);
        println!("relabel {:?}", t.elapsed());
        let mut x = r.clone();
        let t = Instant::now();
        rl.apply(&mut x);
        println!("apply {:?}", t.elapsed());
        drop(x);
        for sides in [&[Side::Right][..], &[Side::Left, Side::Right]] {
            let list = EdgeList {
                num_left: n,
                num_right: n,
                square: true,
                left: l.clone(),
                right: r.clone(),
                data: vec![(); m],
            };
            let t = Instant::now();
            let g = GroupedEdges::new(list, sides);
            println!("{} sides {:?}", sides.len(), t.elapsed());
            let t = Instant::now();
            let i = irregularities(&g, Side::Right).unwrap();
            println!("irr {i:?} {:?}", t.elapsed());
            drop(g);
            let list = EdgeList {
                num_left: n,
                num_right: n,
                square: true,
                left: l.clone(),
                right: r.clone(),
                data: vec![1f32; m],
            };
            let t = Instant::now();
            let g = GroupedEdges::new(list, sides);
            println!("{} sides f32 {:?}", sides.len(), t.elapsed());
            drop(g);
        }
    }
}
