//! Holds, without workers.

use std::sync::Arc;

use loom::thread;

use crate::{Piece, model};

fn until<R>(mut attempt: impl FnMut() -> Option<R>) -> R {
    loop {
        if let Some(result) = attempt() {
            return result;
        }
        thread::yield_now();
    }
}

#[test]
fn owners_exclude_owners_and_see_their_writes() {
    model(|| {
        let piece = Arc::new(Piece::new(0));
        let other = Arc::clone(&piece);
        let thread = thread::spawn(move || u32::from(other.try_change(|rows| *rows += 1)));
        let mine = u32::from(piece.try_change(|rows| *rows += 1));
        let changes = mine + thread.join().unwrap();
        assert!(changes > 0, "somebody was first");
        assert_eq!(piece.rows.look(|rows| *rows), changes);
    });
}

#[test]
fn sharers_exclude_owners_and_see_their_writes() {
    model(|| {
        let piece = Arc::new(Piece::new([0, 0]));
        let other = Arc::clone(&piece);
        let thread = thread::spawn(move || {
            until(|| other.try_change(|rows| rows[0] += 1).then_some(()));
            until(|| other.try_change(|rows| rows[1] += 1).then_some(()));
        });
        let first = until(|| piece.try_look(|rows| *rows));
        let second = until(|| piece.try_look(|rows| *rows));
        assert!(first[0] >= first[1] && second >= first, "writes are seen in order: {first:?}, {second:?}");
        thread.join().unwrap();
        assert_eq!(piece.try_look(|rows| *rows), Some([1, 1]));
    });
}

#[test]
fn two_sharers_and_an_owner() {
    model(|| {
        let piece = Arc::new(Piece::new(0));
        let sharers: Vec<_> = (0..2)
            .map(|_| {
                let piece = Arc::clone(&piece);
                thread::spawn(move || piece.try_look(|rows| *rows))
            })
            .collect();
        let changed = piece.try_change(|rows| *rows += 1);
        let seen: Vec<_> = sharers.into_iter().map(|sharer| sharer.join().unwrap()).collect();
        assert!(changed || seen.iter().any(Option::is_some), "not everybody was refused");
        assert!(piece.try_change(|rows| assert_eq!(*rows, i32::from(changed))), "all holds were given back");
    });
}
