//! The stream of a loop while it runs.

use helix_agents_core::stream::ChunkKind;
use helix_agents_planner::PlanOptions;

use crate::support::{
    Heard, chunks, custom, execute, planning, respond, run, runtime, script, shout, shouting,
    teller,
};

/// Weakness 11: nothing was shown before the loop was over.
#[tokio::test]
async fn weakness_11_plans_and_calls_are_streamed_and_plans_never_as_text() {
    let agent = teller().tool(shout(&Heard::default())).build().unwrap();
    let thoughtful = execute([shouting("a", "x")]).with_thinking("hm");
    let model = script([thoughtful, respond()]);
    let runtime = runtime(planning(&model, &agent, PlanOptions::default()));
    let (_, _, handle) = run(&runtime, &agent, "go").await;
    let chunks = chunks(&handle).await;
    let seen: Vec<_> = chunks
        .iter()
        .filter_map(|chunk| match chunk {
            ChunkKind::Custom { name, .. } => Some(name.clone()),
            ChunkKind::Thinking { content, .. } => Some(format!("thinks {content}")),
            ChunkKind::ToolStart { tool, .. } => Some(format!("{tool} starts")),
            ChunkKind::ToolEnd { tool, .. } => Some(format!("{tool} ends")),
            ChunkKind::TextDelta { delta } => Some(format!("text {delta}")),
            _ => None,
        })
        .collect();
    let expected =
        ["thinks hm", "plan", "shout starts", "shout ends", "plan", "tool_logs", "text done"];
    assert_eq!(seen, expected);
    let plans = custom(&chunks, "plan");
    assert_eq!(plans[0]["next_action"], "execute");
    assert_eq!(plans[0]["execution_commands"][0]["todo_suggestion"], "tell");
    assert_eq!(plans[1]["stopped"], "response");
    let logs = custom(&chunks, "tool_logs");
    assert_eq!(logs[0]["tool_logs"][0]["result"], "X");
}
