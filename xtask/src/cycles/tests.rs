//! Cycles of small graphs.

use super::*;

fn found(arrows: &[(&'static str, &'static str)]) -> Vec<String> {
    let mut imports: Imports<'_> = BTreeMap::new();
    for (from, to) in arrows {
        imports.entry(to).or_default();
        imports.entry(from).or_default().insert(to);
    }
    cycles(&imports).iter().map(|cycle| cycle.iter().copied().collect::<String>()).collect()
}

#[test]
fn files_that_reach_each_other_are_one_cycle() {
    assert_eq!(found(&[("a", "b"), ("b", "c")]), [""; 0]);
    assert_eq!(found(&[("a", "b"), ("b", "a"), ("b", "c")]), ["ab"]);
    assert_eq!(found(&[("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "c")]), ["abcd"]);
    assert_eq!(found(&[("a", "b"), ("b", "a"), ("c", "d"), ("d", "c"), ("a", "c")]), ["ab", "cd"]);
}
