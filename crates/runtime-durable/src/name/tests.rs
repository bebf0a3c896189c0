//! Step names and validation of names.

use helix_agents_core::id::CallId;
use helix_agents_runtime::WorkItem;

use super::{problem_of_app, problem_of_schema, step};

#[test]
fn step_names_contain_the_kind_and_the_call() {
    let calls = vec![CallId::new(3, 0), CallId::new(3, 1)];
    let only = WorkItem::Call(CallId::new(3, 2));
    let settle = WorkItem::Settle(calls);
    let items = [
        WorkItem::Open,
        WorkItem::Model(3),
        WorkItem::Children,
        WorkItem::Companions,
        only,
        settle,
    ];
    let names: Vec<_> = items.iter().map(step).collect();
    assert_eq!(names, ["open", "model/3", "children", "companions", "call/3.2", "settle/3"]);
}

#[test]
fn invalid_names_are_rejected() {
    assert_eq!(problem_of_schema("helix_dbos"), None);
    for bad in ["", "Helix", "1st", "a-b", "a\"b", "pg_own", "information_schema", &"x".repeat(64)]
    {
        assert!(problem_of_schema(bad).is_some(), "{bad}");
    }
    assert_eq!(problem_of_app("my-app_1"), None);
    for bad in ["", "ab", "My-app", "a__b", "_abc", "abc_", "a b c", &"x".repeat(101)] {
        assert!(problem_of_app(bad).is_some(), "{bad}");
    }
}
