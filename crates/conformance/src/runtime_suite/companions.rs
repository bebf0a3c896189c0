//! Scenarios for companions, which stay and are used through tools.

use expect_test::expect;
use helix_agents_core::agent::{Agent, AgentBuilder, CompanionMode};
use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::{AgentExecutor, Resumable};
use helix_agents_core::session::{RunStatus, Submission};
use helix_agents_core::stream::ChunkKind;
use helix_agents_test::{Gate, Reply, RoutingScriptedLlm, ScriptedLlm};
use serde_json::{Value, json};

use super::support::{
    Notes, Report, S, asks, check_log, check_transcript, companion, completes, end, fold, fold_of,
    helper, killed_at, note, resume, run, shout, start_run, status, stored_status, submit, teller,
    tool_results, transcript_text, until, until_shown, word,
};
use super::{RuntimeHarness, World};
use crate::normalise;

fn critic() -> AgentBuilder<Report> {
    helper("critic")
}

/// Returns an agent with such a critic as companion.
fn writer(mode: CompanionMode) -> Agent {
    with(&critic().tool(shout()).build().unwrap(), mode)
}

fn with(critic: &Agent<Report>, mode: CompanionMode) -> Agent {
    teller().tool(shout()).companion(critic, mode).build().unwrap()
}

fn call(tool: &str, input: Value) -> Reply {
    Reply::tool_call(&format!("companion__{tool}"), input)
}

fn spawn(name: &str) -> Reply {
    call("spawnAgent", json!({"agent": "critic", "message": "judge this", "name": name}))
}

/// Sends a message to rex.
fn say(message: &str) -> Reply {
    call("sendMessage", json!({"name": "rex", "message": message}))
}

/// Returns a call that concerns rex.
fn of_rex(tool: &str) -> Reply {
    call(tool, json!({"name": "rex"}))
}

fn report(score: i64) -> Reply {
    Reply::finish(json!({"answer": "hm", "score": score}))
}

fn scripts<const T: usize, const C: usize>(
    teller: [Reply; T],
    critic: [Reply; C],
) -> RoutingScriptedLlm {
    RoutingScriptedLlm::new()
        .agent("teller", ScriptedLlm::new(teller))
        .agent("critic", ScriptedLlm::new(critic))
}

/// Waits until rex's run has ended.
async fn rex_ends(executor: &dyn AgentExecutor) -> RunStatus {
    end(&executor.handle(&companion("rex")).await.unwrap()).await.status
}

/// The output of a blocking companion is the result of the call. The companion keeps its conversation and answers
/// another message with a new output.
pub async fn a_blocking_companion_answers_and_accepts_another_message(
    harness: &impl RuntimeHarness,
) {
    let llm = scripts(
        [
            spawn("rex"),
            say("and now?"),
            of_rex("getChildStatus"),
            of_rex("waitForResult"),
            call("listChildren", json!({})),
            Reply::text("Good."),
        ],
        [report(1), report(2)],
    );
    let executor = harness.boot(World::new(llm)).await;
    completes(&start_run(&*executor, &writer(CompanionMode::Blocking), "Write.").await).await;
    check_transcript(
        harness,
        &expect![[r#"
            user "Write."
            assistant None companion__spawnAgent({"agent":"critic","message":"judge this","name":"rex"})
            tool companion__spawnAgent {"name":"rex","status":"completed","output":{"answer":"hm","score":1}}
            assistant None companion__sendMessage({"name":"rex","message":"and now?"})
            tool companion__sendMessage {"name":"rex","status":"completed","output":{"answer":"hm","score":2}}
            assistant None companion__getChildStatus({"name":"rex"})
            tool companion__getChildStatus {"name":"rex","agent":"critic","status":"completed","output":{"answer":"hm","score":2}}
            assistant None companion__waitForResult({"name":"rex"})
            tool companion__waitForResult {"name":"rex","status":"completed","output":{"answer":"hm","score":2}}
            assistant None companion__listChildren({})
            tool companion__listChildren {"children":[{"name":"rex","agent":"critic","status":"completed"}]}
            assistant Some("Good.")
        "#]],
    )
    .await;
    let rex = fold_of(harness, &companion("rex")).await;
    assert_eq!((rex.turn(), rex.runs().count()), (2, 2));
    expect![[r#"
        user "judge this"
        assistant None __finish__({"answer":"hm","score":1})
        tool __finish__ {"acknowledged":true}
        user "and now?"
        assistant None __finish__({"answer":"hm","score":2})
        tool __finish__ {"acknowledged":true}
    "#]]
    .assert_eq(&normalise::transcript(rex.transcript()));
    assert_eq!(fold(harness).await.tree_usage().steps, 8, "what it used is counted once");
}

/// Spawning a companion with the name of a completed companion continues the existing session with the new message.
pub async fn an_ended_companion_resumes_under_its_name(harness: &impl RuntimeHarness) {
    let again = json!({"agent": "critic", "message": "and now?", "name": "rex"});
    let llm = scripts(
        [spawn("rex"), call("spawnAgent", again), Reply::text("Good.")],
        [report(1), report(2)],
    );
    let executor = harness.boot(World::new(llm)).await;
    completes(&start_run(&*executor, &writer(CompanionMode::Blocking), "Write.").await).await;
    expect![[r#"
        tool companion__spawnAgent {"name":"rex","status":"completed","output":{"answer":"hm","score":1}}
        tool companion__spawnAgent {"name":"rex","status":"completed","output":{"answer":"hm","score":2}}
    "#]]
    .assert_eq(&tool_results(harness, "companion__").await);
    let rex = fold_of(harness, &companion("rex")).await;
    assert_eq!((rex.turn(), rex.runs().count()), (2, 2));
    assert_eq!(fold(harness).await.companions().count(), 1);
}

/// The parent of a background companion continues its turn. It gets the completion notice between two steps.
pub async fn a_background_companion_reports_its_completion(harness: &impl RuntimeHarness) {
    let (parent, child) = (Gate::new(), Gate::new());
    let llm = scripts(
        [spawn("rex"), Reply::text("Meanwhile.").at_gate(&parent), Reply::text("So it is done.")],
        [report(3).at_gate(&child)],
    );
    let executor = harness.boot(World::new(llm)).await;
    let handle = start_run(&*executor, &writer(CompanionMode::NonBlocking), "Write.").await;
    parent.reached().await;
    child.open();
    assert_eq!(rex_ends(&*executor).await, RunStatus::Completed);
    until(async || !fold(harness).await.queued_messages().is_empty()).await;
    parent.open();
    completes(&handle).await;
    check_transcript(
        harness,
        &expect![[r#"
            user "Write."
            assistant None companion__spawnAgent({"agent":"critic","message":"judge this","name":"rex"})
            tool companion__spawnAgent {"name":"rex","session":"story-agent-rex","status":"running"}
            assistant Some("Meanwhile.")
            user "[rex] completed: {\"answer\":\"hm\",\"score\":3}"
            assistant Some("So it is done.")
        "#]],
    )
    .await;
    assert_eq!(fold(harness).await.tree_usage().steps, 4);
}

/// If a background companion completes after the turn of its parent, the completion notice is delivered in the next
/// turn.
pub async fn a_companion_that_outlives_the_turn_reports_in_the_next_one(
    harness: &impl RuntimeHarness,
) {
    let gate = Gate::new();
    let llm = scripts(
        [spawn("rex"), Reply::text("Bye."), Reply::text("Ah.")],
        [report(3).at_gate(&gate)],
    );
    let executor = harness.boot(World::new(llm)).await;
    let agent = writer(CompanionMode::NonBlocking);
    completes(&start_run(&*executor, &agent, "Write.").await).await;
    gate.open();
    assert_eq!(rex_ends(&*executor).await, RunStatus::Completed);
    completes(&start_run(&*executor, &agent, "And?").await).await;
    let transcript = transcript_text(harness).await;
    assert!(transcript.contains("[rex] completed"), "{transcript}");
}

/// Terminating a running companion aborts its run. A later message to the companion gets an error.
pub async fn a_companion_can_be_terminated(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let llm = scripts(
        [
            spawn("rex"),
            of_rex("terminateChild"),
            say("still there?").at_gate(&gate),
            Reply::text("Poor rex."),
        ],
        [report(3).at_gate(&Gate::new())],
    );
    let executor = harness.boot(World::new(llm)).await;
    let handle = start_run(&*executor, &writer(CompanionMode::NonBlocking), "Write.").await;
    gate.reached().await;
    assert_eq!(rex_ends(&*executor).await, RunStatus::Aborted);
    gate.open();
    completes(&handle).await;
    let transcript = transcript_text(harness).await;
    assert!(transcript.contains("the child was terminated"), "{transcript}");
}

/// A completed companion can be terminated too. It accepts no further messages, and its name is not reused.
pub async fn a_companion_that_has_ended_can_be_terminated(harness: &impl RuntimeHarness) {
    let llm = scripts(
        [
            spawn("rex"),
            of_rex("terminateChild"),
            of_rex("getChildStatus"),
            say("still there?"),
            spawn("rex"),
            of_rex("terminateChild"),
            Reply::text("Poor rex."),
        ],
        [report(1), report(2)],
    );
    let executor = harness.boot(World::new(llm)).await;
    completes(&start_run(&*executor, &writer(CompanionMode::Blocking), "Write.").await).await;
    expect![[r#"
        tool companion__spawnAgent {"name":"rex","status":"completed","output":{"answer":"hm","score":1}}
        tool companion__terminateChild {"name":"rex","terminated":true}
        tool companion__getChildStatus {"name":"rex","agent":"critic","status":"aborted"}
        tool companion__sendMessage {"error":"the child was terminated; start another one"}
        tool companion__spawnAgent {"error":"the child was terminated; start another one"}
        tool companion__terminateChild {"name":"rex","terminated":true}
    "#]]
    .assert_eq(&tool_results(harness, "companion__").await);
    let rex = fold_of(harness, &companion("rex")).await;
    assert_eq!((status(&rex), rex.last_step()), (RunStatus::Aborted, 1));
}

/// A message to a running companion is delivered between two of its steps.
pub async fn a_message_reaches_a_companion_at_work(harness: &impl RuntimeHarness) {
    let (gate, at_work) = (Gate::new(), Gate::new());
    let llm = scripts(
        [spawn("rex"), say("be kind").at_gate(&at_work), Reply::text("Sent.")],
        [Reply::tool_call("shout", word("no")).at_gate(&gate), report(5)],
    );
    let executor = harness.boot(World::new(llm)).await;
    let handle = start_run(&*executor, &writer(CompanionMode::NonBlocking), "Write.").await;
    gate.reached().await;
    at_work.open();
    completes(&handle).await;
    gate.open();
    assert_eq!(rex_ends(&*executor).await, RunStatus::Completed);
    expect![[r#"
        user "judge this"
        assistant None shout({"word":"no"})
        tool shout "NO"
        user "be kind"
        assistant None __finish__({"answer":"hm","score":5})
        tool __finish__ {"acknowledged":true}
    "#]]
    .assert_eq(&normalise::transcript(fold_of(harness, &companion("rex")).await.transcript()));
}

/// A companion call with an unknown agent or companion, an invalid or used name, or invalid arguments gets an error as
/// its result. The run continues.
pub async fn mistakes_with_companions_are_reported_to_the_model(harness: &impl RuntimeHarness) {
    let spawns = |agent: &str, name: Option<&str>| {
        call("spawnAgent", json!({"agent": agent, "message": "x", "name": name}))
    };
    let llm = scripts(
        [
            spawns("cook", None),
            spawns("critic", Some("r e x")),
            spawns("critic", None),
            spawns("critic", Some("critic-1")),
            spawns("critic", None),
            of_rex("getChildStatus"),
            call("waitForResult", json!({"name": "critic-1"})),
            call("sendMessage", json!({"name": 7})),
            Reply::text("Well."),
        ],
        // They never end, so that no completion is reported.
        [report(1).at_gate(&Gate::new())],
    );
    let executor = harness.boot(World::new(llm)).await;
    completes(&start_run(&*executor, &writer(CompanionMode::NonBlocking), "Write.").await).await;
    expect![[r#"
        tool companion__spawnAgent {"error":"there is no agent `cook`; there are: critic"}
        tool companion__spawnAgent {"error":"`r e x` is not a valid name: use 1 to 64 letters, digits, `_` or `-`"}
        tool companion__spawnAgent {"name":"critic-1","session":"story-agent-critic-1","status":"running"}
        tool companion__spawnAgent {"error":"a child with this name already exists; send it a message"}
        tool companion__spawnAgent {"name":"critic-2","session":"story-agent-critic-2","status":"running"}
        tool companion__getChildStatus {"error":"there is no companion `rex`; there are: critic-1, critic-2"}
        tool companion__waitForResult {"error":"there is no tool `companion__waitForResult`; the tools are: shout, companion__spawnAgent, companion__sendMessage, companion__listChildren, companion__getChildStatus, companion__terminateChild"}
        tool companion__sendMessage {"error":"the arguments do not match the schema: invalid type: integer `7`, expected a string at line 1 column 9"}
    "#]]
    .assert_eq(&tool_results(harness, "").await);
}

/// An agent limits the number of companions of a session. Completed ones count.
pub async fn the_number_of_companions_is_limited(harness: &impl RuntimeHarness) {
    let llm = scripts(
        [spawn("one"), spawn("two"), spawn("three"), spawn("one"), Reply::text("Well.")],
        [report(1), report(2)],
    );
    let executor = harness.boot(World::new(llm)).await;
    let critic = critic().build().unwrap();
    let agent = teller().companion(&critic, CompanionMode::Blocking).max_companions(2);
    completes(&start_run(&*executor, &agent.build().unwrap(), "Write.").await).await;
    expect![[r#"
        tool companion__spawnAgent {"name":"one","status":"completed","output":{"answer":"hm","score":1}}
        tool companion__spawnAgent {"name":"two","status":"completed","output":{"answer":"hm","score":1}}
        tool companion__spawnAgent {"error":"there are 2 companions already, which is the limit"}
        tool companion__spawnAgent {"name":"one","status":"completed","output":{"answer":"hm","score":2}}
    "#]]
    .assert_eq(&tool_results(harness, "").await);
}

/// A caller that waits for a companion is suspended while the companion waits for a user.
pub async fn a_parent_waits_while_its_companion_waits_for_an_answer(harness: &impl RuntimeHarness) {
    let world = || {
        let critic = [Reply::tool_call("shout", word("rent")), report(1)];
        World::new(scripts([spawn("rex"), Reply::text("Good.")], critic))
    };
    let critic = critic().tool(shout().requires_approval()).build().unwrap();
    let agent = with(&critic, CompanionMode::Blocking);
    let executor = harness.boot(world()).await;
    let result = run(&*executor, &agent, "Write.").await;
    assert_eq!(result.status, RunStatus::SuspendedAwaitingChildren);
    assert_eq!(executor.can_resume(&S.into()).await.unwrap(), Resumable::Waiting);
    submit(&*executor, Submission::approve("1.0")).await;
    harness.kill().await;
    let executor = harness.boot(world()).await;
    completes(&resume(&*executor, &agent).await.unwrap()).await;
    check_log(
        harness,
        &expect![[r#"
            session teller state=null
            run Execute
            user "Write."
            step 1 reply ToolUse in=10 out=5
              call 1.0 companion__spawnAgent({"agent":"critic","message":"judge this","name":"rex"})
            child story-agent-rex of critic for 1.0
            end suspended below 1.0
            run Resume
              result 1.0 {"name":"rex","status":"completed","output":{"answer":"hm","score":1}} used in=20 out=10 steps=2 calls=1
            step 1 closed
            step 2 reply EndTurn in=10 out=5 "Good."
            step 2 closed
            end completed "Good."
        "#]],
    )
    .await;
}

/// A process crashes while a parent waits for its companion. Another process continues both, and repeats neither a
/// message nor a step.
pub async fn a_restart_continues_a_companion_where_it_stopped(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let world = || {
        let teller = [spawn("rex"), say("and now?"), Reply::text("Good.")];
        World::new(scripts(teller, [report(1), report(2).at_gate(&gate)]))
    };
    let agent = writer(CompanionMode::Blocking);
    killed_at(harness, world(), &agent, &gate).await;
    let executor = harness.boot(world()).await;
    completes(&resume(&*executor, &agent).await.unwrap()).await;
    let rex = fold_of(harness, &companion("rex")).await;
    assert_eq!((status(&rex), rex.turn(), rex.last_step()), (RunStatus::Completed, 2, 2));
}

/// The state of a companion after the first message is available when it handles the second one.
pub async fn a_companion_keeps_its_state_between_messages(harness: &impl RuntimeHarness) {
    let notes = |text: &str| Reply::tool_call("note", word(text));
    let llm = scripts(
        [spawn("rex"), say("and now?"), Reply::text("Good.")],
        [notes("a"), report(1), notes("b"), report(2)],
    );
    let critic = critic().state::<Notes>().tool(note()).build().unwrap();
    let agent = teller().companion(&critic, CompanionMode::Blocking).build().unwrap();
    let executor = harness.boot(World::new(llm)).await;
    completes(&start_run(&*executor, &agent, "Write.").await).await;
    assert_eq!(fold_of(harness, &companion("rex")).await.state()["notes"], json!(["a", "b"]));
}

/// Companions are listed by name. Sub-agents are not listed.
pub async fn children_that_stay_are_listed_and_others_not(harness: &impl RuntimeHarness) {
    let list = call("listChildren", json!({}));
    let teller_says = [asks(&["helper"]), spawn("rex"), spawn("fido"), list, Reply::text("Good.")];
    let llm = scripts(teller_says, [report(1)]).agent("helper", ScriptedLlm::new([report(2)]));
    let agent = teller()
        .sub_agent(&helper("helper").build().unwrap())
        .companion(&critic().build().unwrap(), CompanionMode::Blocking)
        .build()
        .unwrap();
    let executor = harness.boot(World::new(llm)).await;
    completes(&start_run(&*executor, &agent, "Write.").await).await;
    expect![[r#"
        tool companion__listChildren {"children":[{"name":"fido","agent":"critic","status":"completed"},{"name":"rex","agent":"critic","status":"completed"}]}
    "#]]
    .assert_eq(&tool_results(harness, "companion__listChildren").await);
}

/// `getChildStatus` returns the status of a companion that is running, completed, failed, or waiting for a user.
pub async fn how_a_child_is_can_be_asked_at_any_time(harness: &impl RuntimeHarness) {
    let (busy, asked) = (Gate::new(), Gate::new());
    let names = ["busy", "done", "ill", "shy"];
    let spawn = |name: &str| {
        ("companion__spawnAgent", json!({"agent": name, "message": "go", "name": name}))
    };
    let status_of = |name: &str| ("companion__getChildStatus", json!({ "name": name }));
    let script = |reply: Reply| ScriptedLlm::new([reply]);
    let teller_says = [
        Reply::calls(names.map(spawn)),
        Reply::calls(names.map(status_of)).at_gate(&asked),
        Reply::text("Good."),
    ];
    let llm = RoutingScriptedLlm::new()
        .agent("teller", ScriptedLlm::new(teller_says))
        .agent("busy", script(report(1).at_gate(&busy)))
        .agent("done", script(report(2)))
        .agent("ill", script(Reply::fails(ErrorCode::ProviderRejected)))
        .agent("shy", script(Reply::tool_call("shout", word("may I?"))));
    let agent = names.iter().fold(teller(), |agent, name| {
        let child = helper(name).tool(shout().requires_approval()).build().unwrap();
        agent.companion(&child, CompanionMode::NonBlocking)
    });
    let executor = harness.boot(World::new(llm)).await;
    let handle = start_run(&*executor, &agent.build().unwrap(), "Write.").await;
    asked.reached().await;
    busy.reached().await;
    for name in ["done", "ill", "shy"] {
        end(&executor.handle(&companion(name)).await.unwrap()).await;
    }
    assert_eq!(stored_status(harness, &companion("shy")).await, RunStatus::SuspendedClientTool);
    handle.interrupt(None).await.unwrap();
    asked.open();
    end(&handle).await;
    expect![[r#"
        tool companion__getChildStatus {"name":"busy","agent":"busy","status":"running"}
        tool companion__getChildStatus {"name":"done","agent":"done","status":"completed","output":{"answer":"hm","score":2}}
        tool companion__getChildStatus {"name":"ill","agent":"ill","status":"failed","error":"as scripted"}
        tool companion__getChildStatus {"name":"shy","agent":"shy","status":"waits_for_people"}
    "#]]
    .assert_eq(&tool_results(harness, "companion__getChildStatus").await);
}

/// A parent can wait for a background companion with `waitForResult` and gets its output.
pub async fn a_caller_may_wait_for_a_background_companion(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let spawn = call("spawnAgent", json!({"agent": "scout", "message": "look", "name": "rex"}));
    let teller_says =
        [spawn, of_rex("waitForResult"), Reply::text("Good."), Reply::text("Yes, good.")];
    let llm = scripts(teller_says, []).agent("scout", ScriptedLlm::new([report(7).at_gate(&gate)]));
    let agent = teller()
        .companion(&critic().build().unwrap(), CompanionMode::Blocking)
        .companion(&helper("scout").build().unwrap(), CompanionMode::NonBlocking)
        .build()
        .unwrap();
    let executor = harness.boot(World::new(llm)).await;
    let handle = start_run(&*executor, &agent, "Write.").await;
    until_shown(
        &handle,
        |kind| matches!(kind, ChunkKind::ToolStart { tool, .. } if tool.ends_with("waitForResult")),
    )
    .await;
    gate.reached().await;
    gate.open();
    completes(&handle).await;
    expect![[r#"
        tool companion__waitForResult {"name":"rex","status":"completed","output":{"answer":"hm","score":7}}
    "#]]
    .assert_eq(&tool_results(harness, "companion__waitForResult").await);
}
