//! For Miri too: `cargo +nightly miri test -p megagrid-engine --lib grid`.

use super::*;

#[test]
fn owners_write_their_pieces_at_the_same_time() {
    let array = Disjoint::<u64>::new(vec![0, 3, 3, 8, 9]).unwrap();
    std::thread::scope(|threads| {
        for (pieces, value) in [(0..2, 1), (2..3, 2), (3..4, 3)] {
            let array = &array;
            threads.spawn(move || array.try_own(pieces).unwrap().fill(value));
        }
    });
    assert_eq!(*array.try_share(0..4).unwrap(), [1, 1, 1, 2, 2, 2, 2, 2, 3]);
}

#[test]
fn readers_share_and_see_what_was_written() {
    let array = Disjoint::<u32>::new(vec![0, 2, 4]).unwrap();
    array.try_own(0..2).unwrap().copy_from_slice(&[1, 2, 3, 4]);
    let mine = array.try_share(0..2).unwrap();
    let sum = || array.try_share(0..2).unwrap().iter().sum::<u32>();
    let sums = std::thread::scope(|threads| {
        let readers = [threads.spawn(sum), threads.spawn(sum)];
        readers.map(|reader| reader.join().unwrap())
    });
    assert_eq!((sums, mine.iter().sum()), ([10, 10], 10));
}

#[test]
fn an_owner_sees_what_another_thread_wrote() {
    let array = Disjoint::<u32>::new(vec![0, 1]).unwrap();
    let add = || {
        for _ in 0..20 {
            loop {
                if let Some(mut owned) = array.try_own(0..1) {
                    owned[0] += 1;
                    break;
                }
                std::thread::yield_now();
            }
        }
    };
    std::thread::scope(|threads| (0..2).for_each(|_| drop(threads.spawn(add))));
    assert_eq!(array.try_share(0..1).unwrap()[0], 40);
}

#[test]
fn a_refused_range_gives_back_what_it_took() {
    let array = Disjoint::<u8>::new(vec![0, 1, 2, 3]).unwrap();
    let last = array.try_own(2..3).unwrap();
    assert!(array.try_own(0..3).is_none() && array.try_share(0..3).is_none());
    let shared = array.try_share(0..2).unwrap();
    assert!(array.try_own(1..2).is_none());
    drop((last, shared));
    assert!(array.try_own(0..3).is_some());
    assert!(array.try_own(0..3).is_some());
}

#[test]
fn items_without_size_have_pieces_too() {
    let array = Disjoint::<()>::new(vec![0, 2, 5]).unwrap();
    assert_eq!((array.try_own(1..2).unwrap().len(), array.try_share(0..1).unwrap().len()), (3, 2));
}
