//! Scenarios for the tags of sessions: those that an operation requires, and those by which sessions are listed.

use std::collections::BTreeMap;

use helix_agents_core::agent::Agent;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::executor::{
    AgentExecutor, ExecuteOptions, ForkOptions, MessageOptions, ResumeOptions, RunHandle,
    StopOptions,
};
use helix_agents_core::id::SessionId;
use helix_agents_core::message::UserMessage;
use helix_agents_core::session::{StopKind, Submission};
use helix_agents_core::store::{SessionFilter, list_all};
use helix_agents_core::tool::Tool;
use helix_agents_test::{Gate, Reply, ScriptedLlm, within};

use super::support::{
    S, Word, asks, completes, end, fold, helper, log_of, report, scripts, teller, word,
};
use super::{RuntimeHarness, World};
use crate::faults::{DELETE, Fault, FaultStore};

async fn start(
    executor: &dyn AgentExecutor,
    agent: &Agent,
    owner: &str,
    run: &str,
) -> Result<RunHandle> {
    let options = ExecuteOptions::default().session(S).run(run).required_tag("owner", owner);
    executor.execute(agent.erased(), "go".into(), options).await
}

/// A turn that requires a tag starts in a new session, which gets the tag, and in a session that has it. A session
/// without the tag is reported as not found, and neither changed nor attached to.
pub async fn a_session_without_the_required_tag_is_not_found(harness: &impl RuntimeHarness) {
    let agent = teller().build().unwrap();
    let replies = [Reply::text("one"), Reply::text("two")];
    let executor = harness.boot(World::new(ScriptedLlm::new(replies))).await;
    completes(&start(&*executor, &agent, "ann", "r1").await.unwrap()).await;
    let before = log_of(harness, &S.into()).await;
    for run in ["r1", "r2"] {
        let refused = start(&*executor, &agent, "bob", run).await;
        assert_eq!(refused.unwrap_err().code(), ErrorCode::SessionNotFound, "{run}");
    }
    assert_eq!(log_of(harness, &S.into()).await, before);
    completes(&start(&*executor, &agent, "ann", "r2").await.unwrap()).await;
    assert_eq!(fold(harness).await.turn(), 2);
}

/// A new session has the required tag even if the caller also gives it another value as a label.
pub async fn a_label_does_not_replace_a_required_tag(harness: &impl RuntimeHarness) {
    let agent = teller().build().unwrap();
    let executor = harness.boot(World::new(ScriptedLlm::new([Reply::text("one")]))).await;
    let options = ExecuteOptions::default().session(S).required_tag("owner", "ann");
    let options = options.tag("owner", "bob").tag("topic", "tides");
    let handle = executor.execute(agent.erased(), "go".into(), options).await.unwrap();
    completes(&handle).await;
    let expected = [("owner", "ann"), ("topic", "tides")];
    let expected = BTreeMap::from(expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    assert_eq!(*fold(harness).await.tags(), expected);
    let head = harness.store().head(&S.into()).await.unwrap().unwrap();
    assert_eq!(head.created.tags, expected);
}

/// An operation that can require a tag.
#[derive(Debug, Clone, Copy)]
enum Operation {
    Resume,
    Fork,
    Delete,
    Abort,
    Message,
    Answer,
}

impl Operation {
    const ALL: [Self; 6] =
        [Self::Resume, Self::Fork, Self::Delete, Self::Abort, Self::Message, Self::Answer];

    /// Text of the write with which the operation changes the session.
    fn write(self) -> &'static str {
        match self {
            Self::Resume => "run_started",
            Self::Fork => "forked",
            Self::Delete => DELETE,
            Self::Abort => "abort_requested",
            Self::Message => "message_queued",
            Self::Answer => "submitted",
        }
    }

    /// Performs the operation on the session [`S`] of `owner`. A deletion of nothing is reported as not found.
    async fn perform(self, executor: &dyn AgentExecutor, agent: &Agent, owner: &str) -> Result<()> {
        let session = SessionId::from(S);
        match self {
            Self::Resume => {
                let options = ResumeOptions::default().required_tag("owner", owner);
                executor.resume(agent.erased(), &session, options).await.map(drop)
            }
            Self::Fork => {
                let options = ForkOptions::default().session("fork").required_tag("owner", owner);
                executor.fork(&session, options).await.map(drop)
            }
            Self::Delete => {
                let tags = BTreeMap::from([("owner".to_owned(), owner.to_owned())]);
                if executor.delete_if(&session, &tags).await? {
                    return Ok(());
                }
                Err(Error::new(ErrorCode::SessionNotFound, "nothing was deleted"))
            }
            Self::Abort => {
                let options = StopOptions::default().required_tag("owner", owner);
                executor.stop(&session, StopKind::Abort, options).await
            }
            Self::Message => {
                let options = MessageOptions::default().required_tag("owner", owner);
                executor.queue_message(&session, UserMessage::new("hello"), options).await
            }
            Self::Answer => {
                let answer = Submission::result("2.0", &"red").unwrap();
                let answer = answer.required_tag("owner", owner);
                executor.submit_tool_result(&session, answer).await.map(drop)
            }
        }
    }
}

/// Returns an agent whose runs make one step and then wait for an answer.
fn asking() -> Agent {
    teller().tool(Tool::client::<Word>("ask", "Asks a person.")).build().unwrap()
}

fn script() -> ScriptedLlm {
    ScriptedLlm::new([Reply::more_text("one"), Reply::tool_call("ask", word("colour"))])
}

/// Every operation that requires a tag changes nothing in a session without it, and reports it as not found.
pub async fn every_operation_requires_its_tag(harness: &impl RuntimeHarness) {
    let agent = asking();
    let executor = harness.boot(World::new(script()).registered(&agent)).await;
    assert!(
        end(&start(&*executor, &agent, "ann", "r1").await.unwrap()).await.status.is_suspended()
    );
    let before = log_of(harness, &S.into()).await;
    for operation in Operation::ALL {
        let refused = operation.perform(&*executor, &agent, "bob").await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::SessionNotFound, "{operation:?}");
        assert_eq!(log_of(harness, &S.into()).await, before, "{operation:?}");
    }
    assert_eq!(harness.store().head(&"fork".into()).await.unwrap(), None);
    for operation in [Operation::Fork, Operation::Message, Operation::Answer, Operation::Delete] {
        operation.perform(&*executor, &agent, "ann").await.unwrap();
    }
    assert_eq!(harness.store().head(&S.into()).await.unwrap(), None);
}

/// The session is deleted and created again by another owner after an operation has read it and before the operation
/// writes. The new session is not changed, and the operation reports that there is no such session.
pub async fn an_operation_does_not_reach_the_session_of_another_owner(
    harness: &impl RuntimeHarness,
) {
    let agent = asking();
    for operation in Operation::ALL {
        let executor = harness.boot(World::new(script()).registered(&agent)).await;
        let waits = start(&*executor, &agent, "ann", "r1").await.unwrap();
        assert!(end(&waits).await.status.is_suspended());
        if matches!(operation, Operation::Resume) {
            Operation::Answer.perform(&*executor, &agent, "ann").await.unwrap();
        }
        let gate = Gate::new();
        let store = FaultStore::new(harness.store())
            .with_fault(operation.write(), Fault::HoldBefore(gate.clone()));
        let slow = World::new(script()).registered(&agent).with_store(store);
        let slow = harness.boot(slow).await;
        let replace = async {
            gate.reached().await;
            assert!(executor.delete(&S.into()).await.unwrap());
            let other = harness.boot(World::new(script()).registered(&agent)).await;
            end(&start(&*other, &agent, "bob", "r2").await.unwrap()).await;
            let log = log_of(harness, &S.into()).await;
            gate.open();
            log
        };
        let performed = operation.perform(&*slow, &agent, "ann");
        let (refused, log) = within(async { tokio::join!(performed, replace) }).await;
        assert_eq!(refused.unwrap_err().code(), ErrorCode::SessionNotFound, "{operation:?}");
        assert_eq!(log_of(harness, &S.into()).await, log, "{operation:?}");
        assert!(executor.delete(&S.into()).await.unwrap());
    }
    assert_eq!(harness.store().head(&"fork".into()).await.unwrap(), None);
}

async fn names(harness: &impl RuntimeHarness, filter: SessionFilter) -> Vec<String> {
    let heads = list_all(&*harness.store(), &filter).await.unwrap();
    let mut names: Vec<_> = heads.into_iter().map(|head| head.session.to_string()).collect();
    names.sort();
    names
}

/// The tags of a session select it in lists, also after further turns. Children have none. A fork has the tags of its
/// original, with those that the fork replaces, and keeps them if the original is deleted.
pub async fn sessions_and_their_forks_are_listed_by_tag(harness: &impl RuntimeHarness) {
    let agent = teller().sub_agent(&helper("helper").build().unwrap()).build().unwrap();
    let replies = [asks(&["helper"]), Reply::text("one"), Reply::text("two")];
    let executor = harness.boot(World::new(scripts(replies, [report()]))).await;
    let options = ExecuteOptions::default().session(S).tag("owner", "ann").tag("team", "red");
    completes(&executor.execute(agent.erased(), "go".into(), options).await.unwrap()).await;
    completes(&start(&*executor, &agent, "ann", "r2").await.unwrap()).await;
    let options = ForkOptions::default().session("fork").tag("team", "blue").tag("kind", "fork");
    assert_eq!(executor.fork(&S.into(), options).await.unwrap(), SessionId::from("fork"));

    let of_ann = || SessionFilter::new().tag("owner", "ann");
    assert_eq!(names(harness, SessionFilter::new()).await.len(), 3);
    assert_eq!(names(harness, of_ann()).await, ["fork", S]);
    assert_eq!(names(harness, of_ann().tag("team", "red")).await, [S]);
    assert_eq!(names(harness, of_ann().tag("team", "blue")).await, ["fork"]);
    assert_eq!(names(harness, of_ann().agent("helper")).await.len(), 0);
    assert!(executor.delete(&S.into()).await.unwrap());
    assert_eq!(names(harness, of_ann()).await, ["fork"]);
    let kept = SessionFilter::new().tag("kind", "fork").tag("team", "blue");
    assert_eq!(names(harness, kept).await, ["fork"]);
}
