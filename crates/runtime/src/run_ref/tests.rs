//! Workflow ids with verbatim names and with digests.

use std::collections::HashSet;

use super::{RunId, RunRef, SessionId};

fn run_ref(agent: &str, session: &str, number: u32) -> RunRef {
    let (session, run) = (SessionId::from(session), RunId::from("r"));
    RunRef { session, run, agent: agent.into(), number }
}

#[test]
fn a_workflow_id_contains_the_agent_and_session() {
    assert_eq!(run_ref("poet", "s-1", 0).workflow_id("app"), "app__poet__s-1");
    assert_eq!(run_ref("poet", "s-1", 2).workflow_id("app"), "app__poet__s-1__resume-2");
}

#[test]
fn workflow_ids_are_unique() {
    let names =
        ["a", "a_", "_a", "a__b", "b", "resume-1", "a__resume-1", "", "é", "~", "a b", "a/b"];
    let mut ids = HashSet::new();
    for agent in names {
        for session in names {
            for number in 0..3 {
                assert!(ids.insert(run_ref(agent, session, number).workflow_id("app")));
            }
        }
    }
    let long = "x".repeat(200);
    let id = run_ref(&long, &long, 7).workflow_id("app");
    assert!(id.len() < 300 && id.is_ascii(), "{id}");
}
