//! Names that stand for themselves, and names that cannot.

use std::collections::HashSet;

use super::{RunId, RunRef, SessionId};

fn of(agent: &str, session: &str, number: u32) -> RunRef {
    let (session, run) = (SessionId::from(session), RunId::from("r"));
    RunRef { session, run, agent: agent.into(), number }
}

#[test]
fn a_workflow_is_called_after_its_agent_and_session() {
    assert_eq!(of("poet", "s-1", 0).workflow_id("app"), "app__poet__s-1");
    assert_eq!(of("poet", "s-1", 2).workflow_id("app"), "app__poet__s-1__resume-2");
}

#[test]
fn no_two_runs_have_workflows_of_the_same_name() {
    let names =
        ["a", "a_", "_a", "a__b", "b", "resume-1", "a__resume-1", "", "é", "~", "a b", "a/b"];
    let mut ids = HashSet::new();
    for agent in names {
        for session in names {
            for number in 0..3 {
                assert!(ids.insert(of(agent, session, number).workflow_id("app")));
            }
        }
    }
    let long = "x".repeat(200);
    let id = of(&long, &long, 7).workflow_id("app");
    assert!(id.len() < 300 && id.is_ascii(), "{id}");
}
