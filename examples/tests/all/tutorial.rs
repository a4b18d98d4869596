//! The blocks of the tutorial are its program.

#[test]
fn the_page_and_the_program_are_the_same() {
    let page = include_str!("../../../docs/book/src/own-algorithm.md");
    let blocks: Vec<&str> = page.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(blocks.join("\n"), include_str!("../../tutorial.rs"));
}
