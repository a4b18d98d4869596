//! The tutorial's blocks are its program, and the program finds what was planted.

#[path = "../tutorial.rs"]
#[allow(dead_code, reason = "its main is run by hand")]
mod tutorial;

#[test]
fn the_page_and_the_program_are_the_same() {
    let page = include_str!("../../docs/tutorial.md");
    let blocks: Vec<&str> = page.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(blocks.join("\n"), include_str!("../tutorial.rs"));
}

#[test]
fn planted_biases_are_found_with_any_number_of_workers() {
    for workers in 1..=3 {
        let (_, items) = tutorial::fit(tutorial::ratings(), workers).unwrap();
        // 400 ratings an item, noise of deviation 0.29 and the users' uncertainty: 0.1 is six deviations.
        for (item, &bias) in items.iter().enumerate() {
            assert!((bias - tutorial::planted(item)).abs() < 0.1, "{workers} workers, item {item}: {bias}");
        }
    }
}
