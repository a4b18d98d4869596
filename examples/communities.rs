//! Finds communities of a generated graph from one labelled member in fifty.
//!
//!     cargo run --release -p megagrid-examples --example communities

use std::time::Instant;

use megagrid::prelude::*;
use megagrid_examples::communities::propagate;

const MEMBERS: usize = 100_000;
const COMMUNITIES: usize = 8;
/// Friends that each member chooses, three of four in the own community.
const FRIENDS: usize = 10;
const KNOWN_ONE_IN: usize = 50;

fn main() -> Result<(), Error> {
    let edges = friendships()?;
    let known = |id: usize| id.is_multiple_of(KNOWN_ONE_IN).then(|| community(id));
    let begin = Instant::now();
    let shares = propagate(&edges, COMMUNITIES, known, &Settings::default())?;
    let seconds = begin.elapsed().as_secs_f64();

    println!(
        "{MEMBERS} members of {COMMUNITIES} communities, the community of one in {KNOWN_ONE_IN} known; {seconds:.2} s\n"
    );
    println!("community  members  found  mean share of the own community");
    let mut found = 0;
    for own in 0..COMMUNITIES {
        let members: Vec<_> = (0..MEMBERS).filter(|&id| community(id) == own && known(id).is_none()).collect();
        let right = members.iter().filter(|&&id| largest(&shares[id]) == own).count();
        let mean = members.iter().map(|&id| shares[id][own]).sum::<f32>() / members.len() as f32;
        println!("{own:>9}  {:>7}  {:>4.1}%  {mean:.3}", members.len(), 100.0 * right as f64 / members.len() as f64);
        found += right;
    }
    let unknown = (0..MEMBERS).filter(|&id| known(id).is_none()).count();
    println!("\n{found} of {unknown} found ({:.1} %; guessing finds 12.5 %)", 100.0 * found as f64 / unknown as f64);
    Ok(())
}

/// The planted answer.
fn community(id: usize) -> usize {
    Random::new(1, id as u64).below(COMMUNITIES as u64) as usize
}

/// Makes friendships, in both directions, stronger within a community.
fn friendships() -> Result<Edges<f32>, Error> {
    let mut by_community = vec![Vec::new(); COMMUNITIES];
    (0..MEMBERS).for_each(|id| by_community[community(id)].push(id));
    let mut edges = Vec::new();
    for id in 0..MEMBERS {
        let mut random = Random::new(2, id as u64);
        for _ in 0..FRIENDS {
            let own = &by_community[community(id)];
            let within = random.unit() < 0.75;
            let friend = if within {
                own[random.below(own.len() as u64) as usize]
            } else {
                random.below(MEMBERS as u64) as usize
            };
            let weight = 0.5 + random.unit() as f32;
            edges.extend([(id, friend), (friend, id)].map(|(from, to)| (from as u32, to as u32, weight)));
        }
    }
    Ok(Edges::square(MEMBERS, edges)?)
}

fn largest(shares: &[f32]) -> usize {
    (0..shares.len()).max_by(|&a, &b| shares[a].total_cmp(&shares[b])).unwrap_or(0)
}
