//! Scenarios for the phases of a step: tools and sub-agents concurrently, then finish tools, then companions.

use expect_test::expect;
use helix_agents_core::agent::CompanionMode;
use helix_agents_core::executor::ExecuteOptions;
use helix_agents_core::session::{RunStatus, Submission};
use helix_agents_core::stream::ChunkKind;
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use helix_agents_test::{Gate, Reply, ScriptedLlm};
use serde_json::json;

use super::support::{
    Diary, Report, Word, check_stream, chunks, completes, end, held, helper, report, resume, run,
    scripts, shout, start_run, submit as answer, teller, until_shown, word,
};
use super::{RuntimeHarness, World};

/// Returns a finish tool.
fn submit() -> Tool {
    Tool::function("submit", "Submits.", |input: Word, _: ToolContext| async move {
        Ok::<_, ToolError>(input.word)
    })
    .finish_with()
}

/// Returns a finish tool that transforms its word into a report.
fn hand_in() -> Tool {
    Tool::function("hand_in", "Hands in.", |input: Word, _: ToolContext| async move {
        Ok::<_, ToolError>(input)
    })
    .finish_with_transform(|word: Word| Ok(Report { answer: word.word, score: 2 }))
}

const AFTER: &[&str] = &["after_tool", "after_sub_agent"];

/// The tools and sub-agents of a reply run concurrently. Finish tools and the hooks of results wait for both.
pub async fn sub_agents_run_concurrently_with_the_tools_of_a_reply(harness: &impl RuntimeHarness) {
    let (tool, child) = (Gate::new(), Gate::new());
    let calls = [
        ("submit", word("end")),
        ("hold", word("a")),
        ("subagent__helper", json!({"message": "find out"})),
    ];
    let llm = scripts([Reply::calls(calls)], [report().at_gate(&child)]);
    let diary = Diary::default();
    let agent = teller()
        .tool(held("hold", &tool))
        .tool(submit())
        .sub_agent(&helper("helper").build().unwrap())
        .hooks(diary.clone())
        .build()
        .unwrap();
    let executor = harness.boot(World::new(llm)).await;
    let handle = start_run(&*executor, &agent, "go").await;
    tool.reached().await;
    child.reached().await;
    tool.open();
    until_shown(&handle, |kind| matches!(kind, ChunkKind::ToolEnd { .. })).await;
    assert_eq!(diary.lines_of(AFTER), "", "hooks wait for the child");
    child.open();
    completes(&handle).await;
    expect![[r#"
        teller: after_tool 1.1 hold success=true
        teller: after_sub_agent 1.2 helper success=true
        teller: after_tool 1.0 submit success=true
    "#]]
    .assert_eq(&diary.lines_of(AFTER));
}

/// A finish tool runs after the sub-agents of its reply, even if a sub-agent waits for a user. Its output then
/// completes the turn.
pub async fn a_sub_agent_next_to_a_finish_tool_ends_first(harness: &impl RuntimeHarness) {
    let llm = || {
        scripts(
            [Reply::calls([
                ("submit", word("end")),
                ("subagent__helper", json!({"message": "find out"})),
            ])],
            [Reply::tool_call("shout", word("hm")), report()],
        )
    };
    let helper = helper("helper").tool(shout().requires_approval()).build().unwrap();
    let agent = teller().tool(submit()).sub_agent(&helper).build().unwrap();
    let executor = harness.boot(World::new(llm())).await;
    let result = run(&*executor, &agent, "go").await;
    assert_eq!(result.status, RunStatus::SuspendedAwaitingChildren);
    answer(&*executor, Submission::approve("1.0")).await;
    harness.kill().await;
    let executor = harness.boot(World::new(llm())).await;
    let handle = resume(&*executor, &agent).await.unwrap();
    let result = end(&handle).await;
    assert_eq!(result.output.unwrap().to_value(), json!("end"));
    check_stream(
        &handle,
        &expect![[r#"
        [helper] tool_start 1.0 shout {"word":"hm"}
        [helper] tool_end 1.0 success=true "HM"
        [helper] checkpoint
        [helper] checkpoint
        [helper] output {"answer":"yes","score":1}
        [helper] run_ended completed
        subagent_end 1.1 helper success=true
        tool_end 1.1 success=true {"answer":"yes","score":1}
        tool_start 1.0 submit {"word":"end"}
        tool_end 1.0 success=true "end"
        checkpoint
        output "end"
        run_ended completed
    "#]],
    )
    .await;
}

/// Companion calls run last and in call order, regardless of their position in the reply. `after_tool` is called for
/// them too.
pub async fn companion_calls_come_last(harness: &impl RuntimeHarness) {
    let diary = Diary::default();
    let calls = [
        ("companion__getChildStatus", json!({"name": "rex"})),
        ("companion__listChildren", json!({})),
        ("submit", word("end")),
        ("shout", word("hm")),
    ];
    let llm = scripts([Reply::calls(calls)], [report()]);
    let agent = teller()
        .tool(shout())
        .tool(submit())
        .companion(&helper("helper").build().unwrap(), CompanionMode::Blocking)
        .tool_concurrency(1)
        .hooks(diary.clone())
        .build()
        .unwrap();
    let executor = harness.boot(World::new(llm)).await;
    let handle = start_run(&*executor, &agent, "go").await;
    completes(&handle).await;
    let chunks = chunks(&handle).await;
    let started = chunks.iter().filter_map(|stored| match &stored.chunk.kind {
        ChunkKind::ToolStart { tool, .. } => Some(&**tool),
        _ => None,
    });
    assert_eq!(
        started.collect::<Vec<_>>(),
        ["shout", "submit", "companion__getChildStatus", "companion__listChildren"]
    );
    expect![[r#"
        teller: after_tool 1.3 shout success=true
        teller: after_tool 1.2 submit success=true
        teller: after_tool 1.0 companion__getChildStatus success=false companion_unknown
        teller: after_tool 1.1 companion__listChildren success=true
    "#]]
    .assert_eq(&diary.lines_of(AFTER));
}

/// A sub-agent can complete with a finish tool, as with `__finish__`. Its output is the result of the call, and the
/// stream of its parent continues.
pub async fn a_sub_agent_may_end_by_a_finish_tool(harness: &impl RuntimeHarness) {
    let done = Diary::default();
    let llm = scripts(
        [
            Reply::calls([("subagent__helper", json!({"message": "find out"}))]),
            Reply::text("It is so."),
        ],
        [Reply::tool_call("hand_in", word("x"))],
    );
    let helper = helper("helper").tool(hand_in()).hooks(done.clone()).build().unwrap();
    let executor = harness.boot(World::new(llm)).await;
    let agent = teller().sub_agent(&helper).build().unwrap();
    let handle = start_run(&*executor, &agent, "go").await;
    completes(&handle).await;
    let lines = done.lines_of(&["on_agent_complete"]);
    assert_eq!(lines, "helper: on_agent_complete {\"answer\":\"x\",\"score\":2}\n");
    check_stream(
        &handle,
        &expect![[r#"
        run_started
        tool_arg 0 subagent__helper
        args {"message":"find out"}
        subagent_start 1.0 helper
        [helper] run_started
        [helper] tool_arg 0 hand_in
        [helper] args {"word":"x"}
        [helper] tool_start 1.0 hand_in {"word":"x"}
        [helper] tool_end 1.0 success=true {"word":"x"}
        [helper] checkpoint
        [helper] output {"answer":"x","score":2}
        [helper] run_ended completed
        subagent_end 1.0 helper success=true
        tool_end 1.0 success=true {"answer":"x","score":2}
        checkpoint
        text It is so.
        checkpoint
        output "It is so."
        run_ended completed
    "#]],
    )
    .await;
}

/// `on_agent_complete` runs once for each way to complete a turn: a finish tool, a native output, a stop condition, and
/// text.
pub async fn hooks_run_once_for_every_way_to_complete(harness: &impl RuntimeHarness) {
    let done = Diary::default();
    let world = |reply: Reply| World::new(ScriptedLlm::new([reply]));
    let turns: [(_, Reply); 4] = [
        (
            teller()
                .tool(hand_in())
                .output::<Report>()
                .hooks(done.clone())
                .build()
                .unwrap()
                .erased(),
            Reply::tool_call("hand_in", word("x")),
        ),
        (
            teller()
                .output::<Report>()
                .native_output()
                .hooks(done.clone())
                .build()
                .unwrap()
                .erased(),
            Reply::output(json!({"answer": "n", "score": 3})),
        ),
        (
            teller()
                .tool(shout())
                .stop_when(|_| true)
                .hooks(done.clone())
                .build()
                .unwrap()
                .erased(),
            Reply::tool_call("shout", word("hm")),
        ),
        (teller().hooks(done.clone()).build().unwrap().erased(), Reply::text("text")),
    ];
    for (number, (agent, reply)) in turns.into_iter().enumerate() {
        let executor = harness.boot(world(reply)).await;
        let options = ExecuteOptions::default();
        let options = options.session(format!("story {number}"));
        let handle = executor.execute(agent, "go".into(), options).await.unwrap();
        completes(&handle).await;
    }
    expect![[r#"
        teller: on_agent_complete {"answer":"x","score":2}
        teller: on_agent_complete {"answer":"n","score":3}
        teller: on_agent_complete none
        teller: on_agent_complete "text"
    "#]]
    .assert_eq(&done.lines_of(&["on_agent_complete"]));
}
