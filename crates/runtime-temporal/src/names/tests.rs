//! Names must remain stable, because the histories of running workflows contain them.

use std::sync::Arc;

use helix_agents_core::id::CallId;
use helix_agents_runtime::{RunRef, WorkItem};

use super::{Names, summary};

fn run(number: u32) -> RunRef {
    let agent = Arc::from("teller");
    RunRef { session: "story".into(), run: "run".into(), agent, number }
}

#[test]
fn the_summary_contains_agent_session_and_run() {
    assert_eq!(summary(&run(2)), "teller in session story, run 3");
}

#[test]
fn activity_ids_contain_the_work_item_and_its_repetition() {
    let mut names = Names::from_step(2);
    let call = CallId::from("2.1");
    let mut item = |item: WorkItem| names.item(&item);
    assert_eq!(item(WorkItem::Open), ("open".to_owned(), true));
    assert_eq!(item(WorkItem::Settle(vec![call.clone()])), ("settle/2".to_owned(), true));
    assert_eq!(item(WorkItem::Settle(vec![call.clone()])), ("settle/2/2".to_owned(), false));
    assert_eq!(item(WorkItem::Call(call.clone())), ("call/2.1".to_owned(), true));
    assert_eq!(names.call(&call), ("call/2.1/2".to_owned(), false));
    assert_eq!(names.follow(&call), "follow/2.1");
    let mut item = |item: WorkItem| names.item(&item).0;
    assert_eq!(item(WorkItem::Model(3)), "model/3");
    assert_eq!(item(WorkItem::Children), "children/3");
    assert_eq!(item(WorkItem::Companions), "companions/3");
}
