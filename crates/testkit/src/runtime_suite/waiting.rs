//! Waiting, and what happens at the worst moment of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use expect_test::expect;
use futures_util::StreamExt as _;
use helix_agents_core::agent::{Agent, CompanionMode};
use helix_agents_core::error::ErrorCode;
use helix_agents_core::event::{Suspension, ToolOutcome};
use helix_agents_core::executor::{AgentExecutor, RunHandle};
use helix_agents_core::hooks::{AgentHooks, Before, HookContext, HookResult, ToolCallView};
use helix_agents_core::id::SessionId;
use helix_agents_core::json::Json;
use helix_agents_core::message::{Message, UserMessage};
use helix_agents_core::session::{RunStatus, Session, Submission, load};
use helix_agents_core::state::Patch;
use helix_agents_core::stream::ChunkKind;
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use serde_json::json;

use super::support::{
    Notes, Report, S, Word, begin, check_transcript, fold, note, resume, run, shout, teller,
};
use super::{RuntimeHarness, World};
use crate::faults::{Fault, FaultStore};
use crate::gate::{Gate, within};
use crate::normalise;
use crate::scripted::{Reply, RoutingScriptedLlm, ScriptedLlm};

type Trace = Arc<Mutex<Vec<String>>>;

/// A tool that asks first, writes down that it ran, and then stands at the gate.
fn pay(trace: &Trace, gate: &Gate) -> Tool {
    let (trace, gate) = (Arc::clone(trace), gate.clone());
    Tool::function("pay", "Pays.", move |input: Word, _: ToolContext| {
        trace.lock().unwrap().push(input.word.clone());
        let gate = gate.clone();
        async move {
            gate.pass().await;
            Ok::<_, ToolError>(format!("paid {}", input.word))
        }
    })
    .requires_approval()
}

fn ask() -> Tool {
    Tool::client::<Word>("ask", "Asks a person.")
}

fn opened() -> Gate {
    let gate = Gate::new();
    gate.open();
    gate
}

fn word(word: &str) -> serde_json::Value {
    json!({ "word": word })
}

fn answer(call: &str) -> Submission {
    Submission::result(call, &word("blue")).unwrap()
}

async fn submit(executor: &dyn AgentExecutor, submission: Submission) {
    executor.submit_tool_result(&S.into(), submission).await.unwrap();
}

async fn ended(handle: &RunHandle) -> RunStatus {
    within(handle.result()).await.unwrap().status
}

async fn of(harness: &impl RuntimeHarness, session: &SessionId) -> Session {
    load(&*harness.store(), session).await.unwrap()
}

/// Nobody who has something to say is cut short.
pub async fn a_message_that_lands_while_the_run_ends_is_answered(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let store = FaultStore::new(harness.store()).on("run_ended", Fault::HoldBefore(gate.clone()));
    let llm = ScriptedLlm::new([Reply::text("Done."), Reply::text("That too.")]);
    let executor = harness.boot(World::new(llm).on(store)).await;
    let agent = teller().build().unwrap();
    let handle = begin(&*executor, &agent, "go").await;
    gate.reached().await;
    let elsewhere = harness.boot(World::new(ScriptedLlm::new([]))).await;
    elsewhere.send_message(&S.into(), UserMessage::new("one more thing")).await.unwrap();
    gate.open();
    assert_eq!(ended(&handle).await, RunStatus::Completed);
    check_transcript(
        harness,
        &expect![[r#"
            user "go"
            assistant Some("Done.")
            user "one more thing"
            assistant Some("That too.")
        "#]],
    )
    .await;
}

/// It was too late; what it would have stopped is done.
pub async fn an_interrupt_that_lands_while_the_run_ends_is_void(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let store = FaultStore::new(harness.store()).on("run_ended", Fault::HoldBefore(gate.clone()));
    let executor =
        harness.boot(World::new(ScriptedLlm::new([Reply::text("Done.")])).on(store)).await;
    let agent = teller().build().unwrap();
    let handle = begin(&*executor, &agent, "go").await;
    gate.reached().await;
    let elsewhere = harness.boot(World::new(ScriptedLlm::new([]))).await;
    elsewhere.interrupt(&S.into(), None).await.unwrap();
    gate.open();
    assert_eq!(ended(&handle).await, RunStatus::Completed);
    assert_eq!(resume(&*executor, &agent).await.unwrap_err().code(), ErrorCode::NothingToResume);
}

/// The answer is in the log before the suspension is: the run need not wait.
pub async fn an_answer_that_lands_while_the_run_suspends_is_taken_at_once(
    harness: &impl RuntimeHarness,
) {
    let gate = Gate::new();
    let calls = Reply::calls([("ask", word("a")), ("ask", word("b"))]);
    let script = || ScriptedLlm::new([calls.clone(), Reply::text("Done.")]);
    let executor = harness.boot(World::new(script())).await;
    let agent = teller().tool(ask()).build().unwrap();
    run(&*executor, &agent, "go").await;
    submit(&*executor, answer("1.0")).await;
    let store = FaultStore::new(harness.store()).on("suspended", Fault::HoldBefore(gate.clone()));
    let other = harness.boot(World::new(script()).on(store)).await;
    let handle = resume(&*other, &agent).await.unwrap();
    gate.reached().await;
    submit(&*executor, answer("1.1")).await;
    gate.open();
    assert_eq!(ended(&handle).await, RunStatus::Completed);
}

/// Whoever is first does; the others see that it is done.
pub async fn of_two_processes_that_go_on_by_themselves_one_runs(harness: &impl RuntimeHarness) {
    let trace = Trace::default();
    let agent = teller().tool(pay(&trace, &opened())).tool(ask()).build().unwrap();
    let calls = Reply::calls([("pay", word("rent")), ("ask", word("b"))]);
    let world = || {
        let script = ScriptedLlm::new([calls.clone(), Reply::text("Done.")]);
        World::new(script).registered(&agent).auto_resuming()
    };
    let (one, two) = (harness.boot(world()).await, harness.boot(world()).await);
    run(&*one, &agent, "go").await;
    let (first, second) =
        tokio::join!(submit(&*one, Submission::approve("1.0")), submit(&*two, answer("1.1")));
    assert_eq!((first, second), ((), ()));
    within(async {
        while fold(harness).await.last_run().unwrap().status != RunStatus::Completed {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
    assert_eq!(*trace.lock().unwrap(), ["rent"], "it was paid once");
}

/// What has no deadline waits on.
pub async fn the_sweeper_takes_what_expired_and_not_what_waits(harness: &impl RuntimeHarness) {
    let agent = teller().tool(ask().deadline(Duration::from_millis(20))).build().unwrap();
    let script = ScriptedLlm::new([Reply::tool_call("ask", word("a")), Reply::text("Nobody.")]);
    let executor = harness.boot(World::new(script).registered(&agent)).await;
    let result = run(&*executor, &agent, "go").await;
    let deadline = result.suspended.unwrap().deadline().unwrap();
    within(async {
        loop {
            let now = harness.store().head(&S.into()).await.unwrap().unwrap().read_at;
            let swept = executor.sweep().await.unwrap();
            let Some(handle) = swept.first() else {
                tokio::time::sleep(Duration::from_millis(2)).await;
                continue;
            };
            let after = harness.store().head(&S.into()).await.unwrap().unwrap().read_at;
            assert!(after > deadline, "swept at {now}, which is before {deadline}");
            assert_eq!(ended(handle).await, RunStatus::Completed);
            break;
        }
    })
    .await;
    assert!(executor.sweep().await.unwrap().is_empty());
    let late = executor.submit_tool_result(&S.into(), answer("1.0")).await;
    assert_eq!(late.unwrap_err().code(), ErrorCode::AnswerExpired);
}

/// An answer that nobody went on with is found, once.
pub async fn of_the_sweeper_and_a_person_one_goes_on(harness: &impl RuntimeHarness) {
    let agent = teller().tool(ask()).build().unwrap();
    let script = || ScriptedLlm::new([Reply::tool_call("ask", word("a")), Reply::text("Done.")]);
    let executor = harness.boot(World::new(script()).registered(&agent)).await;
    run(&*executor, &agent, "go").await;
    assert!(executor.sweep().await.unwrap().is_empty(), "there is nothing to go on with");
    submit(&*executor, answer("1.0")).await;
    let other = harness.boot(World::new(script()).registered(&agent)).await;
    let (swept, resumed) = tokio::join!(other.sweep(), resume(&*executor, &agent));
    let swept = swept.unwrap();
    match (swept.first(), &resumed) {
        (Some(handle), Err(error)) => {
            let told =
                [ErrorCode::AlreadyResumed, ErrorCode::AlreadyRunning, ErrorCode::NothingToResume];
            assert!(told.contains(&error.code()), "{error}");
            assert_eq!(ended(handle).await, RunStatus::Completed);
        }
        (None, Ok(handle)) => assert_eq!(ended(handle).await, RunStatus::Completed),
        both => panic!("{both:?}"),
    }
    assert_eq!(fold(harness).await.runs().count(), 2);
}

/// It may have acted: people said yes once, not twice.
pub async fn an_approved_call_that_was_killed_is_not_run_again(harness: &impl RuntimeHarness) {
    let (trace, gate) = (Trace::default(), Gate::new());
    let tool = |gate: &Gate| pay(&trace, gate).timeout(Duration::from_millis(300));
    let agent = |gate: &Gate| -> Agent { teller().tool(tool(gate)).build().unwrap() };
    let script = || ScriptedLlm::new([Reply::tool_call("pay", word("rent")), Reply::text("Done.")]);
    let executor = harness.boot(World::new(script()).short_lease()).await;
    run(&*executor, &agent(&gate), "go").await;
    submit(&*executor, Submission::approve("1.0")).await;
    resume(&*executor, &agent(&gate)).await.unwrap();
    gate.reached().await;
    harness.kill().await;
    let executor = harness.boot(World::new(script())).await;
    let handle = resume(&*executor, &agent(&opened())).await.unwrap();
    assert_eq!(ended(&handle).await, RunStatus::Completed);
    assert_eq!(*trace.lock().unwrap(), ["rent"]);
    check_transcript(
        harness,
        &expect![[r#"
            user "go"
            assistant None pay({"word":"rent"})
            tool pay {"error":"the process stopped while this call ran, and whether it acted is not known; it was not run again"}
            assistant Some("Done.")
        "#]],
    )
    .await;
}

fn helper(mode: Option<CompanionMode>) -> Agent {
    let helper = Agent::builder("helper")
        .description("Finds things out.")
        .system_prompt("You find out.")
        .model("scripted")
        .tool(shout())
        .output::<Report>()
        .build()
        .unwrap();
    match mode {
        Some(mode) => teller().companion(&helper, mode).build().unwrap(),
        None => teller().sub_agent(&helper).build().unwrap(),
    }
}

fn report() -> Reply {
    Reply::finish(json!({"answer": "yes", "score": 1}))
}

/// The parent dies with its child's end in the child's log and not in its own.
pub async fn a_child_that_finished_while_its_parent_was_down_is_heard(
    harness: &impl RuntimeHarness,
) {
    let gate = Gate::new();
    let llm = || {
        let delegate = Reply::tool_call("subagent__helper", json!({"message": "find out"}));
        RoutingScriptedLlm::new()
            .agent("teller", ScriptedLlm::new([delegate, Reply::text("So.")]))
            .agent("helper", ScriptedLlm::new([report()]))
    };
    let store =
        FaultStore::new(harness.store()).on(r#""child":{"#, Fault::HoldBefore(gate.clone()));
    let executor = harness.boot(World::new(llm()).on(store).short_lease()).await;
    let agent = helper(None);
    begin(&*executor, &agent, "go").await;
    gate.reached().await;
    harness.kill().await;
    let child = SessionId::of_call(&S.into(), &"1.0".into());
    assert_eq!(of(harness, &child).await.last_run().unwrap().status, RunStatus::Completed);
    let executor = harness.boot(World::new(llm())).await;
    let handle = resume(&*executor, &agent).await.unwrap();
    assert_eq!(ended(&handle).await, RunStatus::Completed);
    assert_eq!(of(harness, &child).await.runs().count(), 1, "the child is not run again");
}

/// It died between its own end and the message to its parent, who looks when it goes on.
pub async fn a_companion_that_ended_without_a_word_is_heard(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let spawn = json!({"agent": "helper", "message": "find out", "name": "rex"});
    let llm = || {
        RoutingScriptedLlm::new()
            .agent(
                "teller",
                ScriptedLlm::new([
                    Reply::tool_call("companion__spawnAgent", spawn.clone()),
                    Reply::text("Bye."),
                    Reply::text("Ah."),
                ]),
            )
            .agent("helper", ScriptedLlm::new([report()]))
    };
    let store =
        FaultStore::new(harness.store()).on("message_queued", Fault::HoldBefore(gate.clone()));
    let agent = helper(Some(CompanionMode::NonBlocking));
    let executor = harness.boot(World::new(llm()).on(store)).await;
    assert_eq!(run(&*executor, &agent, "go").await.status, RunStatus::Completed);
    gate.reached().await;
    harness.kill().await;
    assert!(fold(harness).await.queued_messages().is_empty());
    let executor = harness.boot(World::new(llm())).await;
    assert_eq!(run(&*executor, &agent, "And?").await.status, RunStatus::Completed);
    let told = normalise::transcript(fold(harness).await.transcript());
    assert_eq!(told.matches("[rex] completed").count(), 1, "{told}");
}

/// Whoever opens a page in the middle of a run sees every word once.
pub async fn a_page_and_what_follows_have_no_gap_and_no_repetition(harness: &impl RuntimeHarness) {
    let (slow, model) = (Gate::new(), Gate::new());
    let gate = slow.clone();
    let wait = Tool::function("wait", "Waits.", move |_: Word, cx: ToolContext| {
        cx.progress("half way", Some(0.5));
        let gate = gate.clone();
        async move {
            gate.pass().await;
            Ok::<_, ToolError>("waited")
        }
    });
    let calls = Reply::calls([("wait", word("a")), ("shout", word("b"))]);
    let script = ScriptedLlm::new([calls, Reply::text("All done.").at_gate(&model)]);
    let executor = harness.boot(World::new(script)).await;
    let agent = teller().tool(wait).tool(shout()).build().unwrap();
    let handle = begin(&*executor, &agent, "go").await;
    super::support::until_shown(&handle, |kind| {
        matches!(kind, ChunkKind::StepCommitted { version: 5, .. })
    })
    .await;
    let page = executor.page(&S.into()).await.unwrap();
    assert_eq!(
        page.session.open_step().unwrap().calls.iter().filter(|it| it.finish.is_some()).count(),
        1
    );
    let live = normalise::stream(&page.live);
    assert!(live.contains("half way") && !live.contains("shout"), "{live}");
    slow.open();
    model.open();
    assert_eq!(ended(&handle).await, RunStatus::Completed);
    let mut rest = executor.follow(&S.into(), page.next_seq).await.unwrap();
    let mut seen = page.live.clone();
    while let Some(stored) = within(rest.next()).await {
        let stored = stored.unwrap();
        let last = stored.chunk.kind.ends_run();
        seen.push(stored);
        if last {
            break;
        }
    }
    expect![[r#"
        tool_start 1.0 wait {"word":"a"}
        progress 1.0 half way
        tool_end 1.0 success=true "waited"
        checkpoint
        text All done.
        checkpoint
        output "All done."
        run_ended completed
    "#]]
    .assert_eq(&normalise::stream(&seen));
}

/// Writes down what it is told.
#[derive(Clone, Default)]
struct Diary(Trace);

impl Diary {
    fn note(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }
}

#[async_trait]
impl AgentHooks for Diary {
    async fn on_agent_suspended(&self, _: &HookContext, on: &Suspension) -> HookResult {
        self.note(format!("suspended: {:?} on {}", on.reason(), on.calls.len()));
        Ok(())
    }
    async fn on_agent_resumed(&self, _: &HookContext, from: &Suspension) -> HookResult {
        self.note(format!("resumed: {:?}", from.reason()));
        Ok(())
    }
    async fn before_tool(
        &self,
        _: &HookContext,
        call: ToolCallView<'_>,
    ) -> HookResult<Before<Json>> {
        self.note(format!("before_tool {}", call.call));
        Ok(Before::Continue)
    }
    async fn on_state_change(&self, _: &HookContext, _: &Patch) -> HookResult {
        self.note("on_state_change");
        Ok(())
    }
    async fn on_message(&self, _: &HookContext, message: &Message) -> HookResult {
        if let Message::Tool(result) = message {
            self.note(format!("on_message {}", result.tool_call_id));
        }
        Ok(())
    }
    async fn after_tool(
        &self,
        _: &HookContext,
        call: ToolCallView<'_>,
        outcome: &ToolOutcome,
    ) -> HookResult {
        let success = matches!(outcome, ToolOutcome::Success(_));
        self.note(format!("after_tool {} success={success}", call.call));
        Ok(())
    }
}

/// In the same order as for any other call; what was not run has no `before_tool`.
pub async fn hooks_hear_of_waiting_and_of_what_people_answered(harness: &impl RuntimeHarness) {
    let diary = Diary::default();
    let calls = [("pay", word("a")), ("pay", word("b")), ("ask", word("c")), ("shout", word("d"))];
    let script = ScriptedLlm::new([Reply::calls(calls), Reply::text("Done.")]);
    let agent = teller()
        .tool(pay(&Trace::default(), &opened()))
        .tool(ask())
        .tool(shout())
        .hooks(diary.clone())
        .build()
        .unwrap();
    let executor = harness.boot(World::new(script)).await;
    run(&*executor, &agent, "go").await;
    submit(&*executor, Submission::approve("1.0")).await;
    submit(&*executor, Submission::deny("1.1", None)).await;
    submit(&*executor, answer("1.2")).await;
    let handle = resume(&*executor, &agent).await.unwrap();
    assert_eq!(ended(&handle).await, RunStatus::Completed);
    expect![[r#"
        before_tool 1.3
        on_message 1.3
        after_tool 1.3 success=true
        suspended: ClientTool on 3
        resumed: ClientTool
        on_message 1.1
        after_tool 1.1 success=false
        on_message 1.2
        after_tool 1.2 success=true
        before_tool 1.0
        on_message 1.0
        after_tool 1.0 success=true
    "#]]
    .assert_eq(&(diary.0.lock().unwrap().join("\n") + "\n"));
}

/// The approved one runs as any other does, in the run that goes on; the other one has its end.
pub async fn hooks_hear_of_an_approved_call_and_of_one_that_nobody_answered(
    harness: &impl RuntimeHarness,
) {
    let diary = Diary::default();
    let calls = [("note", word("a")), ("ask", word("b"))];
    let script = ScriptedLlm::new([Reply::calls(calls), Reply::text("Done.")]);
    let agent = teller()
        .state::<Notes>()
        .tool(note().requires_approval())
        .tool(ask().deadline(Duration::from_millis(20)))
        .hooks(diary.clone())
        .build()
        .unwrap();
    let executor = harness.boot(World::new(script)).await;
    let deadline = run(&*executor, &agent, "go").await.suspended.unwrap().deadline().unwrap();
    submit(&*executor, Submission::approve("1.0")).await;
    within(async {
        while harness.store().head(&S.into()).await.unwrap().unwrap().read_at <= deadline {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
    let handle = resume(&*executor, &agent).await.unwrap();
    assert_eq!(ended(&handle).await, RunStatus::Completed);
    expect![[r#"
        suspended: ClientTool on 2
        resumed: ClientTool
        on_message 1.1
        after_tool 1.1 success=false
        before_tool 1.0
        on_state_change
        on_message 1.0
        after_tool 1.0 success=true
    "#]]
    .assert_eq(&(diary.0.lock().unwrap().join("\n") + "\n"));
}

/// The caller's hooks are told of both: of the child, which waits for people, and of itself.
pub async fn hooks_hear_that_a_child_waits(harness: &impl RuntimeHarness) {
    let diary = Diary::default();
    let helper = Agent::builder("helper")
        .description("Finds things out.")
        .system_prompt("You find out.")
        .model("scripted")
        .tool(ask())
        .output::<Report>()
        .build()
        .unwrap();
    let delegate = Reply::tool_call("subagent__helper", json!({"message": "find out"}));
    let llm = RoutingScriptedLlm::new()
        .agent("teller", ScriptedLlm::new([delegate, Reply::text("So.")]))
        .agent("helper", ScriptedLlm::new([Reply::tool_call("ask", word("a")), report()]));
    let agent = teller().sub_agent(&helper).hooks(diary.clone()).build().unwrap();
    let executor = harness.boot(World::new(llm)).await;
    run(&*executor, &agent, "go").await;
    submit(&*executor, answer("1.0")).await;
    let handle = resume(&*executor, &agent).await.unwrap();
    assert_eq!(ended(&handle).await, RunStatus::Completed);
    let lines = diary.0.lock().unwrap();
    let told: Vec<_> = lines
        .iter()
        .filter(|it| it.starts_with("suspended") || it.starts_with("resumed"))
        .collect();
    assert_eq!(
        told,
        [
            "suspended: ClientTool on 1",
            "suspended: AwaitingChildren on 0",
            "resumed: AwaitingChildren",
            "resumed: ClientTool",
        ]
    );
}
