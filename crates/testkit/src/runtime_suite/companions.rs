//! Companions: children that stay, and are spoken to by tools.

use expect_test::expect;
use helix_agents_core::agent::{Agent, AgentBuilder, CompanionMode};
use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::{ExecuteOptions, Resumable};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::{RunStatus, Session, Submission, load};
use helix_agents_core::stream::ChunkKind;
use helix_agents_core::tool::{Tool, ToolError};
use serde_json::{Value, json};

use super::support::{
    Notes, Report, S, Word, begin, check_log, check_transcript, fold, note, resume, run, shout,
    teller, until_shown,
};
use super::{RuntimeHarness, World};
use crate::gate::{Gate, within};
use crate::normalise;
use crate::scripted::{Reply, RoutingScriptedLlm, ScriptedLlm};

fn critic() -> AgentBuilder<(), Report> {
    Agent::builder("critic")
        .description("Judges texts.")
        .system_prompt("You judge.")
        .model("scripted")
        .tool(shout())
        .output::<Report>()
}

fn writer(critic: &Agent<(), Report>, mode: CompanionMode) -> Agent {
    teller().tool(shout()).companion(critic, mode).build().unwrap()
}

fn call(tool: &str, input: Value) -> Reply {
    Reply::tool_call(&format!("companion__{tool}"), input)
}

fn spawn(name: &str) -> Reply {
    call("spawnAgent", json!({"agent": "critic", "message": "judge this", "name": name}))
}

fn report(score: i64) -> Reply {
    Reply::finish(json!({"answer": "hm", "score": score}))
}

fn scripts(writer: ScriptedLlm, critic: ScriptedLlm) -> RoutingScriptedLlm {
    RoutingScriptedLlm::new().agent("teller", writer).agent("critic", critic)
}

fn child(name: &str) -> SessionId {
    SessionId::of_companion(&S.into(), name)
}

async fn below(harness: &impl RuntimeHarness, name: &str) -> Session {
    load(&*harness.store(), &child(name)).await.unwrap()
}

fn status(session: &Session) -> RunStatus {
    session.last_run().unwrap().status
}

/// It answers, keeps what was said, and answers again with a fresh output.
pub async fn a_blocking_companion_answers_and_can_be_asked_again(harness: &impl RuntimeHarness) {
    let llm = scripts(
        ScriptedLlm::new([
            spawn("rex"),
            call("sendMessage", json!({"name": "rex", "message": "and now?"})),
            call("getChildStatus", json!({"name": "rex"})),
            call("waitForResult", json!({"name": "rex"})),
            call("listChildren", json!({})),
            Reply::text("Good."),
        ]),
        ScriptedLlm::new([report(1), report(2)]),
    );
    let executor = harness.boot(World::new(llm)).await;
    let agent = writer(&critic().build().unwrap(), CompanionMode::Blocking);
    assert_eq!(run(&*executor, &agent, "Write.").await.status, RunStatus::Completed);
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
    let rex = below(harness, "rex").await;
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

/// The parent goes on, and is told between two steps.
pub async fn a_companion_that_works_beside_tells_when_it_is_done(harness: &impl RuntimeHarness) {
    let (parent, child_gate) = (Gate::new(), Gate::new());
    let llm = scripts(
        ScriptedLlm::new([
            spawn("rex"),
            Reply::text("Meanwhile.").at_gate(&parent),
            Reply::text("So it is done."),
        ]),
        ScriptedLlm::new([report(3).at_gate(&child_gate)]),
    );
    let executor = harness.boot(World::new(llm)).await;
    let agent = writer(&critic().build().unwrap(), CompanionMode::NonBlocking);
    let handle = begin(&*executor, &agent, "Write.").await;
    parent.reached().await;
    child_gate.open();
    let rex = executor.handle(&child("rex")).await.unwrap();
    assert_eq!(within(rex.result()).await.unwrap().status, RunStatus::Completed);
    let told = async {
        while fold(harness).await.queued_messages().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    within(told).await;
    parent.open();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
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

/// What comes when nobody listens is heard in the next turn.
pub async fn a_companion_that_outlives_the_turn_is_heard_in_the_next(
    harness: &impl RuntimeHarness,
) {
    let gate = Gate::new();
    let llm = scripts(
        ScriptedLlm::new([spawn("rex"), Reply::text("Bye."), Reply::text("Ah.")]),
        ScriptedLlm::new([report(3).at_gate(&gate)]),
    );
    let executor = harness.boot(World::new(llm)).await;
    let agent = writer(&critic().build().unwrap(), CompanionMode::NonBlocking);
    assert_eq!(run(&*executor, &agent, "Write.").await.status, RunStatus::Completed);
    gate.open();
    let rex = executor.handle(&child("rex")).await.unwrap();
    assert_eq!(within(rex.result()).await.unwrap().status, RunStatus::Completed);
    let again = ExecuteOptions::default().session(S);
    let handle = executor.execute(agent.erased(), "And?".into(), again).await.unwrap();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    let told = normalise::transcript(fold(harness).await.transcript());
    assert!(told.contains("[rex] completed"), "{told}");
}

/// It is stopped for good, and says so to whoever asks.
pub async fn a_companion_can_be_terminated(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let llm = scripts(
        ScriptedLlm::new([
            spawn("rex"),
            call("terminateChild", json!({"name": "rex"})),
            call("sendMessage", json!({"name": "rex", "message": "still there?"})).at_gate(&gate),
            Reply::text("Poor rex."),
        ]),
        ScriptedLlm::new([report(3).at_gate(&Gate::new())]),
    );
    let executor = harness.boot(World::new(llm)).await;
    let agent = writer(&critic().build().unwrap(), CompanionMode::NonBlocking);
    let handle = begin(&*executor, &agent, "Write.").await;
    gate.reached().await;
    let rex = executor.handle(&child("rex")).await.unwrap();
    assert_eq!(within(rex.result()).await.unwrap().status, RunStatus::Aborted);
    gate.open();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    let told = normalise::transcript(fold(harness).await.transcript());
    assert!(told.contains("the child was terminated"), "{told}");
}

/// A message to one that is at work enters between two of its steps.
pub async fn a_message_reaches_a_companion_at_work(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let llm = scripts(
        ScriptedLlm::new([
            spawn("rex"),
            call("sendMessage", json!({"name": "rex", "message": "be kind"})),
            Reply::text("Sent."),
        ]),
        ScriptedLlm::new([
            Reply::tool_call("shout", json!({"word": "no"})).at_gate(&gate),
            report(5),
        ]),
    );
    let executor = harness.boot(World::new(llm)).await;
    let agent = writer(&critic().build().unwrap(), CompanionMode::NonBlocking);
    assert_eq!(run(&*executor, &agent, "Write.").await.status, RunStatus::Completed);
    gate.open();
    let rex = executor.handle(&child("rex")).await.unwrap();
    assert_eq!(within(rex.result()).await.unwrap().status, RunStatus::Completed);
    expect![[r#"
        user "judge this"
        assistant None shout({"word":"no"})
        tool shout "NO"
        user "be kind"
        assistant None __finish__({"answer":"hm","score":5})
        tool __finish__ {"acknowledged":true}
    "#]]
    .assert_eq(&normalise::transcript(below(harness, "rex").await.transcript()));
}

/// What cannot be done is told to the model.
pub async fn mistakes_with_companions_are_told_to_the_model(harness: &impl RuntimeHarness) {
    let llm = scripts(
        ScriptedLlm::new([
            call("spawnAgent", json!({"agent": "cook", "message": "x"})),
            call("spawnAgent", json!({"agent": "critic", "message": "x", "name": "r e x"})),
            call("spawnAgent", json!({"agent": "critic", "message": "x"})),
            call("spawnAgent", json!({"agent": "critic", "message": "x", "name": "critic-1"})),
            call("spawnAgent", json!({"agent": "critic", "message": "x"})),
            call("getChildStatus", json!({"name": "rex"})),
            call("waitForResult", json!({"name": "critic-1"})),
            call("sendMessage", json!({"name": 7})),
            Reply::text("Well."),
        ]),
        // They never end, so that nobody is told of it.
        ScriptedLlm::new([report(1).at_gate(&Gate::new())]),
    );
    let executor = harness.boot(World::new(llm)).await;
    let agent = writer(&critic().build().unwrap(), CompanionMode::NonBlocking);
    assert_eq!(run(&*executor, &agent, "Write.").await.status, RunStatus::Completed);
    let transcript = normalise::transcript(fold(harness).await.transcript());
    let results: String = transcript
        .lines()
        .filter(|line| line.starts_with("tool"))
        .map(|it| format!("{it}\n"))
        .collect();
    expect![[r#"
        tool companion__spawnAgent {"error":"there is no agent `cook`; there are: critic"}
        tool companion__spawnAgent {"error":"`r e x` is no name: 1 to 64 letters, digits, `_` or `-`"}
        tool companion__spawnAgent {"name":"critic-1","session":"story-agent-critic-1","status":"running"}
        tool companion__spawnAgent {"error":"there is a child `critic-1` already; send it a message"}
        tool companion__spawnAgent {"name":"critic-2","session":"story-agent-critic-2","status":"running"}
        tool companion__getChildStatus {"error":"there is no child `rex`; there are: critic-1, critic-2"}
        tool companion__waitForResult {"error":"there is no tool `companion__waitForResult`; the tools are: shout, companion__spawnAgent, companion__sendMessage, companion__listChildren, companion__getChildStatus, companion__terminateChild"}
        tool companion__sendMessage {"error":"the arguments do not fit: invalid type: integer `7`, expected a string at line 1 column 9"}
    "#]]
    .assert_eq(&results);
}

/// A companion that waits for people lets a caller wait that waits for it.
pub async fn a_companion_that_waits_for_people_lets_its_caller_wait(harness: &impl RuntimeHarness) {
    let pay = Tool::function("pay", "Pays.", |input: Word, _| async move {
        Ok::<_, ToolError>(format!("paid {}", input.word))
    });
    let critic = critic().tool(pay.requires_approval()).build().unwrap();
    let llm = || {
        scripts(
            ScriptedLlm::new([spawn("rex"), Reply::text("Good.")]),
            ScriptedLlm::new([Reply::tool_call("pay", json!({"word": "rent"})), report(1)]),
        )
    };
    let executor = harness.boot(World::new(llm())).await;
    let agent = writer(&critic, CompanionMode::Blocking);
    let result = run(&*executor, &agent, "Write.").await;
    assert_eq!(result.status, RunStatus::SuspendedAwaitingChildren);
    assert_eq!(executor.can_resume(&S.into()).await.unwrap(), Resumable::Waiting);
    executor.submit_tool_result(&S.into(), Submission::approve("1.0")).await.unwrap();
    harness.kill().await;
    let executor = harness.boot(World::new(llm())).await;
    let handle = resume(&*executor, &agent).await.unwrap();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
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

/// The process dies while one waits for the other; nothing is said or done twice.
pub async fn a_restart_goes_on_with_a_companion_where_it_stopped(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let llm = |gate: &Gate| {
        scripts(
            ScriptedLlm::new([
                spawn("rex"),
                call("sendMessage", json!({"name": "rex", "message": "and now?"})),
                Reply::text("Good."),
            ]),
            ScriptedLlm::new([report(1), report(2).at_gate(gate)]),
        )
    };
    let agent = writer(&critic().build().unwrap(), CompanionMode::Blocking);
    let executor = harness.boot(World::new(llm(&gate)).short_lease()).await;
    begin(&*executor, &agent, "Write.").await;
    gate.reached().await;
    harness.kill().await;
    gate.open();
    let executor = harness.boot(World::new(llm(&gate))).await;
    let handle = resume(&*executor, &agent).await.unwrap();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    let rex = below(harness, "rex").await;
    assert_eq!((status(&rex), rex.turn(), rex.last_step()), (RunStatus::Completed, 2, 2));
}

/// What the first message left is there for the second.
pub async fn a_companion_keeps_its_state_between_messages(harness: &impl RuntimeHarness) {
    let llm = scripts(
        ScriptedLlm::new([
            spawn("rex"),
            call("sendMessage", json!({"name": "rex", "message": "and now?"})),
            Reply::text("Good."),
        ]),
        ScriptedLlm::new([
            Reply::tool_call("note", json!({"word": "a"})),
            report(1),
            Reply::tool_call("note", json!({"word": "b"})),
            report(2),
        ]),
    );
    let critic = critic().state::<Notes>().tool(note()).build().unwrap();
    let agent = teller().companion(&critic, CompanionMode::Blocking).build().unwrap();
    let executor = harness.boot(World::new(llm)).await;
    assert_eq!(run(&*executor, &agent, "Write.").await.status, RunStatus::Completed);
    let rex = below(harness, "rex").await;
    assert_eq!(rex.state()["notes"], json!(["a", "b"]));
}

/// By name; a sub-agent is none of them.
pub async fn children_that_stay_are_listed_and_others_not(harness: &impl RuntimeHarness) {
    let helper = Agent::builder("helper")
        .description("Finds things out.")
        .system_prompt("You find out.")
        .model("scripted")
        .output::<Report>()
        .build()
        .unwrap();
    let delegate = Reply::tool_call("subagent__helper", json!({"message": "find out"}));
    let writer = [
        delegate,
        spawn("rex"),
        spawn("fido"),
        call("listChildren", json!({})),
        Reply::text("Good."),
    ];
    let llm = scripts(ScriptedLlm::new(writer), ScriptedLlm::new([report(1)]))
        .agent("helper", ScriptedLlm::new([report(2)]));
    let critic = critic().build().unwrap();
    let agent = teller().sub_agent(&helper).companion(&critic, CompanionMode::Blocking);
    let agent = agent.build().unwrap();
    let executor = harness.boot(World::new(llm)).await;
    assert_eq!(run(&*executor, &agent, "Write.").await.status, RunStatus::Completed);
    let told = normalise::transcript(fold(harness).await.transcript());
    let listed = told.lines().find(|line| line.starts_with("tool companion__listChildren"));
    expect![[r#"tool companion__listChildren {"children":[{"name":"fido","agent":"critic","status":"completed"},{"name":"rex","agent":"critic","status":"completed"}]}"#]].assert_eq(listed.unwrap());
}

/// One is at work, one is done, one has failed, and one waits.
pub async fn how_a_child_is_can_be_asked_at_any_time(harness: &impl RuntimeHarness) {
    let (busy, asked) = (Gate::new(), Gate::new());
    let child_of = |name: &str| {
        let message = json!({"agent": name, "message": "go", "name": name});
        ("companion__spawnAgent", message)
    };
    let names = ["busy", "done", "ill", "shy"];
    let status_of = |name: &str| ("companion__getChildStatus", json!({ "name": name }));
    let llm = RoutingScriptedLlm::new()
        .agent(
            "teller",
            ScriptedLlm::new([
                Reply::calls(names.map(child_of)),
                Reply::calls(names.map(status_of)).at_gate(&asked),
                Reply::text("Good."),
            ]),
        )
        .agent("busy", ScriptedLlm::new([report(1).at_gate(&busy)]))
        .agent("done", ScriptedLlm::new([report(2)]))
        .agent("ill", ScriptedLlm::new([Reply::fails(ErrorCode::ProviderRejected)]))
        .agent("shy", ScriptedLlm::new([Reply::tool_call("shout", json!({"word": "may I?"}))]));
    let agent = names.iter().fold(teller(), |agent, name| {
        let child = Agent::builder(name)
            .description("Does something.")
            .system_prompt("You do.")
            .model("scripted")
            .tool(shout().requires_approval())
            .output::<Report>();
        agent.companion(&child.build().unwrap(), CompanionMode::NonBlocking)
    });
    let agent = agent.build().unwrap();
    let executor = harness.boot(World::new(llm)).await;
    let handle = begin(&*executor, &agent, "Write.").await;
    asked.reached().await;
    busy.reached().await;
    for (name, ends) in [
        ("done", RunStatus::Completed),
        ("ill", RunStatus::Failed),
        ("shy", RunStatus::SuspendedClientTool),
    ] {
        let run = executor.handle(&child(name)).await.unwrap();
        assert_eq!(within(run.result()).await.unwrap().status, ends, "{name}");
    }
    handle.interrupt(None).await.unwrap();
    asked.open();
    within(handle.result()).await.unwrap();
    let told = normalise::transcript(fold(harness).await.transcript());
    let told: String = told
        .lines()
        .filter(|line| line.starts_with("tool companion__getChildStatus"))
        .map(|it| format!("{it}\n"))
        .collect();
    expect![[r#"
        tool companion__getChildStatus {"name":"busy","agent":"busy","status":"running"}
        tool companion__getChildStatus {"name":"done","agent":"done","status":"completed","output":{"answer":"hm","score":2}}
        tool companion__getChildStatus {"name":"ill","agent":"ill","status":"failed","error":"as scripted"}
        tool companion__getChildStatus {"name":"shy","agent":"shy","status":"waits_for_people"}
    "#]].assert_eq(&told);
}

/// The wait is the caller's choice, and nothing waits in memory.
pub async fn a_caller_may_wait_for_one_that_works_beside(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let scout = Agent::builder("scout")
        .description("Looks around.")
        .system_prompt("You look.")
        .model("scripted")
        .output::<Report>()
        .build()
        .unwrap();
    let spawn = json!({"agent": "scout", "message": "look", "name": "rex"});
    let writer = [
        call("spawnAgent", spawn),
        call("waitForResult", json!({"name": "rex"})),
        Reply::text("Good."),
        Reply::text("Yes, good."),
    ];
    let llm = RoutingScriptedLlm::new()
        .agent("teller", ScriptedLlm::new(writer))
        .agent("scout", ScriptedLlm::new([report(7).at_gate(&gate)]));
    let agent = teller()
        .companion(&critic().build().unwrap(), CompanionMode::Blocking)
        .companion(&scout, CompanionMode::NonBlocking)
        .build()
        .unwrap();
    let executor = harness.boot(World::new(llm)).await;
    let handle = begin(&*executor, &agent, "Write.").await;
    until_shown(
        &handle,
        |kind| matches!(kind, ChunkKind::ToolStart { tool, .. } if tool.ends_with("waitForResult")),
    )
    .await;
    gate.reached().await;
    gate.open();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    let told = normalise::transcript(fold(harness).await.transcript());
    let result = told.lines().find(|line| line.starts_with("tool companion__waitForResult"));
    expect![[r#"tool companion__waitForResult {"name":"rex","status":"completed","output":{"answer":"hm","score":7}}"#]].assert_eq(result.unwrap());
}
