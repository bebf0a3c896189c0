//! The order of names, and the JSON form.

use super::UsageByName;
use crate::usage::ToolUsage;

#[test]
fn names_are_sorted_and_unique() {
    let mut map = UsageByName::<u64>::default();
    for name in ["b", "a", "c", "a"] {
        *map.get_or_default(name.into()) += 1;
    }
    let names: Vec<_> = map.names().map(|name| &**name).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!((map["a"], map.get("b"), map.get("d"), map.len()), (2, Some(&1), None, 3));
    assert_eq!(map.values().sum::<u64>(), 4);
}

#[test]
fn json_is_an_object_and_the_last_of_two_equal_names_counts() {
    let map: UsageByName<u64> = serde_json::from_str(r#"{"b":1,"a":2,"b":3}"#).unwrap();
    assert_eq!(serde_json::to_string(&map).unwrap(), r#"{"a":2,"b":3}"#);
    assert_eq!(map, UsageByName::from([("b".into(), 1), ("a".into(), 2), ("b".into(), 3)]));
}

#[test]
fn a_map_is_copied_only_if_it_is_shared() {
    let mut map = UsageByName::<ToolUsage>::from([("a".into(), ToolUsage::default())]);
    let place = |map: &UsageByName<ToolUsage>| std::ptr::from_ref(&map["a"]);
    let before = place(&map);
    map.get_or_default("a".into()).calls += 1;
    assert_eq!(place(&map), before);
    let other = map.clone();
    assert_eq!(place(&other), before);
    map.get_or_default("a".into()).calls += 1;
    assert_ne!(place(&map), before);
    assert_eq!((map["a"].calls, other["a"].calls), (2, 1));
}
