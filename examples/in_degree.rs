//! Counts the links that point at each page.
//!
//!     cargo run --release -p megagrid-examples --example in_degree

use megagrid::prelude::*;

vertex! { struct Page { sync: u32, delta: u32 } }
program! { struct Links { vertices: Page } }

fn main() -> Result<(), Error> {
    let links = Edges::square(3, [(0, 2), (1, 2), (2, 0)])?;
    let count = Sequence::new()
        .exchange(|_: Read<Page>, to: Add<Page>| *to.delta += 1)
        .apply(Right, |page: Master<Page>| *page.sync = *page.delta);
    let mut engine = Engine::<Links>::new(&links, count, &Settings::default())?;
    engine.iterate(1)?;
    assert!(engine.on(Right).iter().eq(&[1, 0, 2]));
    Ok(())
}

#[test]
fn it_counts() {
    main().expect("the links are good");
}
