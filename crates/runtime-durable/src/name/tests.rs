//! Names that stand for themselves, and names that cannot.

use std::collections::HashSet;

use helix_agents_core::id::{CallId, RunId, SessionId};
use helix_agents_runtime::{Part, RunRef};

use super::{problem_of_app, problem_of_schema, step, workflow_id};

fn of(agent: &str, session: &str, number: u32) -> RunRef {
    let (session, run) = (SessionId::from(session), RunId::from("r"));
    RunRef { session, run, agent: agent.into(), number }
}

#[test]
fn a_workflow_is_called_after_its_agent_and_session() {
    assert_eq!(workflow_id("app", &of("poet", "s-1", 0)), "app__poet__s-1");
    assert_eq!(workflow_id("app", &of("poet", "s-1", 2)), "app__poet__s-1__resume-2");
}

#[test]
fn no_two_runs_have_workflows_of_the_same_name() {
    let names =
        ["a", "a_", "_a", "a__b", "b", "resume-1", "a__resume-1", "", "é", "~", "a b", "a/b"];
    let mut ids = HashSet::new();
    for agent in names {
        for session in names {
            for number in 0..3 {
                assert!(ids.insert(workflow_id("app", &of(agent, session, number))));
            }
        }
    }
    let long = "x".repeat(200);
    let id = workflow_id("app", &of(&long, &long, 7));
    assert!(id.len() < 300 && id.is_ascii(), "{id}");
}

#[test]
fn steps_are_called_after_what_they_do_and_for_which_call() {
    let calls = vec![CallId::new(3, 0), CallId::new(3, 1)];
    let parts = [Part::Open, Part::Model(3), Part::Children, Part::Companions, Part::Settle(calls)];
    let names: Vec<_> = parts.iter().map(step).collect();
    assert_eq!(names, ["open", "model/3", "children", "companions", "settle/3"]);
}

#[test]
fn names_that_cannot_be_used_are_found_out() {
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
