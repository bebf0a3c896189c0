//! Remote agents: sub-agents that run at another server.

mod approvals;

use std::time::Duration;

use futures_util::StreamExt as _;
use helix_agents_client::{Client, RemoteAgent};
use helix_agents_core::agent::{Agent, AgentRegistry, CompanionMode};
use helix_agents_core::budget::Budget;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::event::Event;
use helix_agents_core::executor::{
    AgentExecutor as _, AgentExecutorExt as _, ExecuteOptions, Resumable, ResumeOptions, RunHandle,
};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::{PendingCallView, RunStatus, Submission, load};
use helix_agents_core::store::SessionStatus;
use helix_agents_core::stream::ChunkKind;
use helix_agents_core::trace::{Operation, SpanId, TraceParent};
use helix_agents_core::usage::Usage;
use helix_agents_runtime_local::{LocalRuntime, RuntimeBuilder as _};
use helix_agents_server::Limits;
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{Gate, Reply, ScriptedLlm, within};
use serde_json::json;

use crate::support::{Proxy, World, builder, fixed, rest, until};

/// The session of the sub-agent that the first call of `talk` starts.
const CHILD: &str = "talk-sub-1.0";

/// A local runtime with the agent `boss`, whose sub-agent is the `clerk` of a server.
struct Home {
    runtime: LocalRuntime,
    boss: Agent,
    model: ScriptedLlm,
    store: MemoryStore,
}

impl Home {
    /// The clerk is called once.
    fn of(clerk: RemoteAgent) -> Self {
        let call = Reply::tool_call("subagent__clerk", json!({ "message": "Go!" }));
        Self::with(clerk, [call, Reply::text("Done.")])
    }

    fn with(clerk: RemoteAgent, replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::on(MemoryStore::new(), clerk, ScriptedLlm::new(replies))
    }

    fn on(store: MemoryStore, clerk: RemoteAgent, model: ScriptedLlm) -> Self {
        let clerk = clerk.description("Does the work.").build().unwrap();
        let boss = Agent::builder("boss")
            .system_prompt("Delegate.")
            .model("scripted")
            .sub_agent(&clerk)
            .build()
            .unwrap();
        let registry = AgentRegistry::default();
        registry.register(&boss).unwrap();
        let runtime = LocalRuntime::builder()
            .store(store.clone())
            .llm(model.clone())
            .registry(registry)
            .grace(Duration::from_millis(50))
            .build()
            .unwrap();
        Self { runtime, boss, model, store }
    }

    async fn start(&self) -> RunHandle<String> {
        let options = ExecuteOptions::default().session("talk");
        self.runtime.start(&self.boss, "Hello!", options).await.unwrap()
    }

    /// Runs until the session ends or waits.
    async fn run(&self) -> RunStatus {
        within(self.start().await.result()).await.unwrap().status
    }

    async fn resume(&self) -> RunStatus {
        let talk = "talk".into();
        let run = self.runtime.resume_agent(&self.boss, &talk, ResumeOptions::default());
        within(run.await.unwrap().result()).await.unwrap().status
    }

    /// Waits until the deadline of a call has passed.
    async fn awake(&self) {
        let talk = "talk".into();
        until(async || self.runtime.can_resume(&talk).await.unwrap() == Resumable::Yes).await;
    }

    async fn pending(&self) -> Vec<PendingCallView> {
        self.runtime.pending_calls(&"talk".into()).await.unwrap()
    }

    /// Returns what the model of the boss read as the result of its call.
    fn result(&self) -> String {
        format!("{:?}", self.model.seen().last().unwrap().messages.last().unwrap())
    }
}

fn remote(client: Client) -> RemoteAgent {
    RemoteAgent::with_client(client, "clerk").patience(Duration::from_secs(20))
}

/// Returns the only session of the server.
async fn only_session(client: &Client) -> SessionId {
    let listing = client.sessions(&Default::default()).await.unwrap();
    assert_eq!(listing.sessions.len(), 1, "{listing:?}");
    listing.sessions[0].session.clone()
}

#[tokio::test]
async fn a_sub_agent_at_a_server_returns_its_text_and_usage() {
    let reply = Reply::text("Blue as the sea.").with_usage(Usage::new(70, 30));
    let world = World::new(ScriptedLlm::new([reply])).await;
    let home = Home::of(remote(world.client()));
    let run = home.start().await;
    let mut stream = run.stream().await.unwrap();
    let (mut text, mut ends) = (String::new(), Vec::new());
    while let Some(stored) = within(stream.next()).await {
        let stored = stored.unwrap();
        match &stored.chunk.kind {
            ChunkKind::TextDelta { delta } if *stored.chunk.session.as_str() == *CHILD => {
                text.push_str(delta);
            }
            ChunkKind::SubagentEnd { .. } => ends.push("child"),
            ChunkKind::ToolEnd { .. } => ends.push("call"),
            _ => {}
        }
    }
    assert_eq!(run.result().await.unwrap().into_output().unwrap(), "Done.");
    assert_eq!((text.as_str(), ends), ("Blue as the sea.", vec!["child", "call"]));
    assert!(home.result().contains("Blue as the sea."), "{}", home.result());
    assert_eq!(world.model.calls(), 1);
    let usage = run.usage().await.unwrap();
    assert!(usage.tokens.total() >= 100, "{usage:?}");
    assert_eq!(usage.models["remote:clerk"].tokens.total(), 100, "{usage:?}");
    let session = only_session(&world.client()).await;
    assert!(session.as_str().starts_with("remote-1-"), "{session}");
}

/// Returns the traces of the runs of the server's session.
async fn traces(client: &Client) -> Vec<Option<TraceParent>> {
    let events = client.events(&only_session(client).await).await.unwrap();
    let trace = |event: &Event| match event {
        Event::RunStarted { trace, .. } => Some(*trace),
        _ => None,
    };
    events.iter().filter_map(|recorded| trace(&recorded.event)).collect()
}

#[tokio::test]
async fn the_trace_of_the_caller_reaches_the_server_on_request() {
    let given: TraceParent =
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().unwrap();
    let call = SpanId::of(&CHILD.into(), Operation::ModelCall { step: 1 });
    for (propagates, expected) in [(true, Some(given.with_span(call))), (false, None)] {
        let world = World::new(ScriptedLlm::new([Reply::text("Blue.")])).await;
        let agent = remote(world.client());
        let home = Home::of(if propagates { agent.propagate_trace() } else { agent });
        let options = ExecuteOptions::default().session("talk").trace(given);
        let run = home.runtime.start(&home.boss, "Hello!", options).await.unwrap();
        within(run.result()).await.unwrap().into_output().unwrap();
        assert_eq!(traces(&world.client()).await, [expected]);
    }
}

#[tokio::test]
async fn a_lost_response_and_a_broken_stream_start_no_second_run() {
    let world = World::new(ScriptedLlm::new([Reply::text("Blue.")])).await;
    let proxy = Proxy::to(world.address).await;
    proxy.cut("POST /start", [20]);
    let home = Home::of(remote(builder(proxy.address).build().unwrap()));
    assert_eq!(home.run().await, RunStatus::Completed);
    assert_eq!((proxy.cuts(), world.model.calls()), (1, 1));
    only_session(&world.client()).await;
}

#[tokio::test]
async fn a_session_waits_for_a_server_that_cannot_be_reached() {
    let mut dead = World::new(ScriptedLlm::new([])).await;
    let proxy = Proxy::to(dead.address).await;
    dead.stopped().await;
    let clerk = remote(builder(proxy.address).build().unwrap())
        .patience(Duration::ZERO)
        .retry_every(Duration::from_millis(100));
    let home = Home::of(clerk);
    assert_eq!(home.run().await, RunStatus::SuspendedAwaitingChildren);
    let pending = home.pending().await;
    assert_eq!(&*pending[0].pending.tool, "remote_wait");
    let reason = pending[0].arguments.to_value()["reason"].to_string();
    assert!(reason.contains("server_unreachable"), "{reason}");

    let world = World::new(ScriptedLlm::new([Reply::text("Blue.")])).await;
    proxy.redirect(world.address);
    home.awake().await;
    assert_eq!(home.resume().await, RunStatus::Completed);
    assert!(home.result().contains("Blue."), "{}", home.result());
    assert_eq!(world.model.calls(), 1);
}

#[tokio::test]
async fn a_waiting_session_tries_again_when_its_call_is_answered() {
    let mut dead = World::new(ScriptedLlm::new([])).await;
    let proxy = Proxy::to(dead.address).await;
    dead.stopped().await;
    let home = Home::of(remote(builder(proxy.address).build().unwrap()).patience(Duration::ZERO));
    assert_eq!(home.run().await, RunStatus::SuspendedAwaitingChildren);
    let world = World::new(ScriptedLlm::new([Reply::text("Blue.")])).await;
    proxy.redirect(world.address);
    let answer = Submission::result(home.pending().await[0].reference(), &"now").unwrap();
    home.runtime.submit_tool_result(&"talk".into(), answer).await.unwrap();
    assert_eq!(home.resume().await, RunStatus::Completed);
    assert!(home.result().contains("Blue."), "{}", home.result());
}

/// A store that is read-only during a failover, and a proxy that answers instead of the server.
#[tokio::test]
async fn an_error_that_an_operator_can_correct_suspends() {
    let error = json!({ "error": {
        "code": "store_read_only", "message": "read-only", "kind": "unsupported", "retryable": false,
    } });
    for (status, body) in [("500 Oh", error.to_string()), ("404 No", "<html>".to_owned())] {
        let length = body.len();
        let response = format!(
            "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        let (address, _heads) = fixed([response]).await;
        let home = Home::of(remote(builder(address).build().unwrap()));
        let outcome = home.run().await;
        assert_eq!(outcome, RunStatus::SuspendedAwaitingChildren, "{status}: {}", home.result());
        assert_eq!(&*home.pending().await[0].pending.tool, "remote_wait");
    }
}

#[tokio::test]
async fn an_interrupt_stops_the_remote_run_and_a_resume_continues_it() {
    let gate = Gate::new();
    let first = Reply::tool_call("missing", json!({})).with_text("One moment.");
    let replies = [first.at_gate(&gate), Reply::text("Blue.")];
    let world = World::new(ScriptedLlm::new(replies)).await;
    let home = Home::of(remote(world.client()));
    let run = home.start().await;
    gate.reached().await;
    run.interrupt("a pause".to_owned()).await.unwrap();
    let client = world.client();
    let session = only_session(&client).await;
    // The request is in the log of the server before the model replies.
    let requested = async || {
        let events = client.events(&session).await.unwrap();
        events.iter().any(|event| matches!(event.event, Event::InterruptRequested { .. }))
    };
    until(requested).await;
    gate.open();
    assert_eq!(within(run.result()).await.unwrap().status, RunStatus::Interrupted);
    assert_eq!(client.status(&session).await.unwrap().summary.status, SessionStatus::Interrupted);
    assert_eq!(home.resume().await, RunStatus::Completed);
    assert!(home.result().contains("Blue."), "{}", home.result());
    assert_eq!(world.model.calls(), 2);
    let child = load(&home.store, &CHILD.into()).await.unwrap();
    let transcript = format!("{:?}", child.transcript());
    assert_eq!(transcript.matches("One moment.").count(), 1, "{transcript}");
}

#[tokio::test]
async fn an_abort_stops_the_remote_run() {
    let gate = Gate::new();
    let world = World::new(ScriptedLlm::new([Reply::text("Blue.").at_gate(&gate)])).await;
    let home = Home::of(remote(world.client()));
    let run = home.start().await;
    gate.reached().await;
    run.abort("enough".to_owned()).await.unwrap();
    assert_eq!(within(run.result()).await.unwrap().status, RunStatus::Aborted);
    let client = world.client();
    let session = only_session(&client).await;
    rest(&mut client.follow(&session)).await;
    assert_eq!(client.status(&session).await.unwrap().summary.status, SessionStatus::Aborted);
}

#[tokio::test]
async fn an_abort_of_a_waiting_session_stops_the_remote_session() {
    let replies = [Reply::tool_call("pay", json!({ "to": "Bob" }))];
    let world = World::new(ScriptedLlm::new(replies)).await;
    let home = Home::of(remote(world.client()));
    home.run().await;
    home.runtime.abort(&"talk".into(), None).await.unwrap();
    let client = world.client();
    let session = only_session(&client).await;
    assert_eq!(client.status(&session).await.unwrap().summary.status, SessionStatus::Aborted);
}

#[tokio::test]
async fn a_process_that_takes_over_attaches_to_the_remote_run() {
    let gate = Gate::new();
    let world = World::new(ScriptedLlm::new([Reply::text("Blue.").at_gate(&gate)])).await;
    let first = Home::of(remote(world.client()));
    first.start().await;
    gate.reached().await;
    first.runtime.shutdown().await;
    let second = Home::on(first.store.clone(), remote(world.client()), first.model.clone());
    let runs = second.runtime.recover().await.unwrap();
    gate.open();
    for run in runs {
        within(run.result()).await.unwrap();
    }
    assert!(second.result().contains("Blue."), "{}", second.result());
    assert_eq!(world.model.calls(), 1);
}

#[tokio::test]
async fn text_of_a_server_that_is_replaced_in_mid_stream_is_returned_once() {
    let gate = Gate::new();
    let store = MemoryStore::new();
    let long = Reply::of_parts([
        helix_agents_test::Part::text("The quick brown fox "),
        helix_agents_test::Part::text("jumps."),
    ]);
    let mut world =
        World::on(&store, ScriptedLlm::new([long.clone().at_gate(&gate)]), Limits::default()).await;
    let proxy = Proxy::to(world.address).await;
    let home = Home::of(remote(builder(proxy.address).build().unwrap()));
    let run = home.start().await;
    gate.reached().await;
    let next = World::on(&store, ScriptedLlm::new([long]), Limits::default()).await;
    proxy.redirect(next.address);
    world.stopped().await;
    assert_eq!(within(run.result()).await.unwrap().status, RunStatus::Completed);
    assert_eq!(home.result().matches("quick").count(), 1, "{}", home.result());
}

#[tokio::test]
async fn a_refused_request_and_a_failed_run_fail_the_call() {
    let world = World::new(ScriptedLlm::new([Reply::fails(ErrorCode::ProviderRejected)])).await;
    let home = Home::of(remote(world.client()));
    assert_eq!(home.run().await, RunStatus::Completed);
    assert!(
        home.result().contains("the remote run failed: provider_rejected"),
        "{}",
        home.result()
    );

    let unknown =
        Home::of(RemoteAgent::with_client(world.client(), "no-such-agent").named("clerk"));
    assert_eq!(unknown.run().await, RunStatus::Completed);
    assert!(unknown.result().contains("agent_not_found"), "{}", unknown.result());

    let url = format!("http://{}", world.address);
    // A token can be replaced, so the session waits.
    let stranger = Home::of(RemoteAgent::http(&url, "clerk").token("another"));
    assert_eq!(stranger.run().await, RunStatus::SuspendedAwaitingChildren);
    let reason = stranger.pending().await[0].arguments.to_value()["reason"].to_string();
    assert!(reason.contains("unauthenticated"), "{reason}");
}

#[tokio::test]
async fn a_companion_keeps_its_conversation_at_the_server() {
    let world = World::new(ScriptedLlm::new([Reply::text("One."), Reply::text("Two.")])).await;
    let (runtime, boss, model) =
        with_companion(world.client(), [spawn(), send(), Reply::text("Done.")]);
    assert_eq!(within(runtime.run(&boss, "Hello!")).await.unwrap(), "Done.");
    let seen = format!("{:?}", model.seen().last().unwrap().messages);
    assert!(seen.contains("One.") && seen.contains("Two."), "{seen}");
    assert_eq!(world.model.seen()[1].messages.len(), 3);
    only_session(&world.client()).await;
}

/// A runtime with a boss whose companion is the clerk of a server.
fn with_companion(
    client: Client,
    replies: impl IntoIterator<Item = Reply>,
) -> (LocalRuntime, Agent, ScriptedLlm) {
    let clerk = remote(client).description("Counts.").build().unwrap();
    let boss = Agent::builder("boss")
        .system_prompt("Delegate.")
        .model("scripted")
        .companion(&clerk, CompanionMode::Blocking)
        .build()
        .unwrap();
    let model = ScriptedLlm::new(replies);
    let runtime =
        LocalRuntime::builder().store(MemoryStore::new()).llm(model.clone()).build().unwrap();
    (runtime, boss, model)
}

fn spawn() -> Reply {
    let spawn = json!({ "agent": "clerk", "message": "Count!", "name": "counter" });
    Reply::tool_call("companion__spawnAgent", spawn)
}

fn send() -> Reply {
    let send = json!({ "name": "counter", "message": "On!" });
    Reply::tool_call("companion__sendMessage", send)
}

#[tokio::test]
async fn a_turn_after_a_failed_one_is_a_run_of_its_own() {
    let replies = [Reply::fails(ErrorCode::ProviderRejected), Reply::text("Two.")];
    let world = World::new(ScriptedLlm::new(replies)).await;
    let (runtime, boss, model) =
        with_companion(world.client(), [spawn(), send(), Reply::text("Done.")]);
    within(runtime.run(&boss, "Hello!")).await.unwrap();
    let seen = format!("{:?}", model.seen().last().unwrap().messages);
    assert!(seen.contains("provider_rejected") && seen.contains("Two."), "{seen}");
}

#[tokio::test]
async fn a_failed_session_is_resumed_at_the_server() {
    let replies = [Reply::fails(ErrorCode::ProviderRejected), Reply::text("Two.")];
    let world = World::new(ScriptedLlm::new(replies)).await;
    let clerk = remote(world.client()).description("Counts.").build().unwrap();
    let runtime = LocalRuntime::builder()
        .store(MemoryStore::new())
        .llm(ScriptedLlm::new([]))
        .build()
        .unwrap();
    let options = ExecuteOptions::default().session("talk");
    let run = runtime.start(&clerk, "Count!", options).await.unwrap();
    assert_eq!(within(run.result()).await.unwrap().status, RunStatus::Failed);
    let run = runtime.resume_agent(&clerk, &"talk".into(), ResumeOptions::default()).await.unwrap();
    assert_eq!(within(run.result()).await.unwrap().into_output().unwrap(), "Two.");
    only_session(&world.client()).await;
}

#[tokio::test]
async fn the_usage_of_a_failed_turn_counts_once() {
    let replies = [
        Reply::tool_call("dance", json!({})).with_usage(Usage::new(70, 30)),
        Reply::fails(ErrorCode::ProviderRejected),
        Reply::tool_call("ask", json!({ "question": "Why?" })).with_usage(Usage::new(4, 2)),
        Reply::text("Two.").with_usage(Usage::new(1, 0)),
    ];
    let world = World::new(ScriptedLlm::new(replies)).await;
    let clerk = remote(world.client()).description("Counts.").build().unwrap();
    let runtime = LocalRuntime::builder().store(MemoryStore::new()).llm(ScriptedLlm::new([]));
    let runtime = runtime.build().unwrap();
    let options = ExecuteOptions::default().session("talk");
    let run = runtime.start(&clerk, "Count!", options).await.unwrap();
    assert_eq!(within(run.result()).await.unwrap().status, RunStatus::Failed);
    let mut expected = run.usage().await.unwrap().tokens;
    let talk = SessionId::from("talk");
    let run = runtime.resume_agent(&clerk, &talk, ResumeOptions::default()).await.unwrap();
    assert_eq!(within(run.result()).await.unwrap().status, RunStatus::SuspendedClientTool);
    let asked = &runtime.pending_calls(&talk).await.unwrap()[0];
    let answer = Submission::result(asked.reference(), &json!({ "because": "so" })).unwrap();
    runtime.submit_tool_result(&talk, answer).await.unwrap();
    let run = runtime.resume_agent(&clerk, &talk, ResumeOptions::default()).await.unwrap();
    assert_eq!(within(run.result()).await.unwrap().into_output().unwrap(), "Two.");
    expected += Usage::new(5, 2);
    assert_eq!(run.usage().await.unwrap().tokens, expected);
}

#[tokio::test]
async fn a_session_that_was_deleted_at_the_server_is_not_started_again() {
    let gate = Gate::new();
    let world = World::new(ScriptedLlm::new([Reply::text("One.")])).await;
    let replies = [spawn(), send().at_gate(&gate), Reply::text("Done.")];
    let (runtime, boss, model) = with_companion(world.client(), replies);
    let running = tokio::spawn(async move { runtime.run(&boss, "Hello!").await });
    gate.reached().await;
    let session = only_session(&world.client()).await;
    world.client().delete(&session).await.unwrap();
    gate.open();
    within(running).await.unwrap().unwrap();
    let seen = format!("{:?}", model.seen().last().unwrap().messages);
    assert!(seen.contains("was not found: it was deleted"), "{seen}");
    assert_eq!(world.model.calls(), 1);
}

#[tokio::test]
async fn a_new_session_with_the_id_of_a_deleted_one_starts_a_new_run() {
    let world = World::new(ScriptedLlm::new([Reply::text("One."), Reply::text("Two.")])).await;
    let home = Home::of(remote(world.client()));
    for _ in 0..2 {
        assert_eq!(home.run().await, RunStatus::Completed);
        home.runtime.delete(&"talk".into()).await.unwrap();
    }
    let listing = world.client().sessions(&Default::default()).await.unwrap();
    assert_eq!((listing.sessions.len(), world.model.calls()), (2, 2));
}

#[tokio::test]
async fn a_deadline_at_the_server_ends_the_local_wait() {
    let hurry = Reply::tool_call("hurry", json!({ "question": "Why?" }));
    let world = World::new(ScriptedLlm::new([hurry, Reply::text("Never mind.")])).await;
    let home = Home::of(remote(world.client()));
    assert_eq!(home.run().await, RunStatus::SuspendedAwaitingChildren);
    assert!(home.pending().await[0].pending.deadline.is_some());
    home.awake().await;
    assert_eq!(home.resume().await, RunStatus::Completed);
    assert!(home.result().contains("Never mind."), "{}", home.result());
    assert_eq!(world.model.calls(), 2);
}

#[tokio::test]
async fn an_output_is_checked_against_the_local_type() {
    let world = World::new(ScriptedLlm::new([Reply::text("Blue.")])).await;
    let clerk = remote(world.client()).output::<Vec<u32>>().description("Counts.").build().unwrap();
    let runtime = LocalRuntime::builder()
        .store(MemoryStore::new())
        .llm(ScriptedLlm::new([]))
        .build()
        .unwrap();
    let error = within(runtime.run(&clerk, "Count!")).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::OutputInvalid, "{error}");
    // The remote agent is not asked to correct it.
    assert_eq!(world.model.calls(), 1);
}

#[tokio::test]
async fn the_budget_applies_at_the_server() {
    let call = || Reply::tool_call("missing", json!({}));
    let world = World::new(ScriptedLlm::new([call(), call(), call(), Reply::text("Blue.")])).await;
    let clerk = remote(world.client()).description("Works.").build().unwrap();
    let runtime = LocalRuntime::builder()
        .store(MemoryStore::new())
        .llm(ScriptedLlm::new([]))
        .build()
        .unwrap();
    let options = ExecuteOptions::default().budget(Budget::new().steps(2));
    let run = runtime.start(&clerk, "Go!", options).await.unwrap();
    let result = within(run.result()).await.unwrap();
    let error = result.error.unwrap();
    assert!(error.message.contains("budget_exceeded"), "{error:?}");
    assert_eq!(world.model.calls(), 2);
}

#[test]
fn invalid_definitions_are_refused() {
    let problem = |agent: RemoteAgent| agent.build().unwrap_err().code();
    assert_eq!(problem(RemoteAgent::http("ftp://example.com", "a")), ErrorCode::ConfigInvalid);
    assert_eq!(problem(RemoteAgent::http("http://localhost", "")), ErrorCode::AgentInvalid);
    let never = RemoteAgent::http("http://localhost", "a").retry_every(Duration::ZERO);
    assert_eq!(problem(never), ErrorCode::AgentInvalid);
}
