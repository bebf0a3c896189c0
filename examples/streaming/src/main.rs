//! A reader of a live stream that is cut off, comes back where it was, and takes back what did not
//! come to be: here, what the first try of a tool showed. The model is the one that is configured,
//! else a script plays it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it reads")]

mod screen;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use futures_util::StreamExt as _;
use helix_agents::llm::{LlmAdapter, RetryPolicy};
use helix_agents::prelude::*;
use helix_agents_testkit::scripted::{Reply, ScriptedLlm};
use serde_json::json;

use screen::Screen;

/// After so many chunks the connection breaks.
const CUT_AFTER: usize = 7;

#[tool]
/// Look for the book of stories. It is not always where it should be.
async fn find_book(cx: &ToolContext) -> Result<&'static str, ToolError> {
    if cx.attempt() == 1 {
        cx.progress("It is not on the shelf. ", None);
        return Err(ToolError::new("the book is not there").retryable());
    }
    cx.progress("Here it is. ", None);
    Ok("a book of stories about logs")
}

#[tokio::main]
async fn main() -> Result<()> {
    let (name, model) = model()?;
    let agent = Agent::builder("teller")
        .system_prompt("You find the book of stories, and then tell a very short one from it.")
        .tool(find_book.into_tool().retry(RetryPolicy::default()))
        .model(name)
        .build()?;
    let store = MemoryStore::new();
    let runtime = LocalRuntime::builder().store(store.clone()).llm_adapter(model).build()?;
    let run = runtime.start(&agent, "A story, please.", ExecuteOptions::default()).await?;

    // The streams of the store; a reader in another process would open the store anew.
    let streams: &dyn StreamManager = &store;
    let mut screen = Screen::default();
    // Where to go on: all that a reader has to remember.
    let mut cursor = 1;

    let mut chunks = streams.read(run.session(), cursor).await?;
    for _ in 0..CUT_AFTER {
        if let Some(chunk) = chunks.next().await {
            cursor = screen.show(&chunk?) + 1;
        }
    }
    drop(chunks);
    println!("-- cut off; going on at {cursor} --");

    let mut chunks = streams.read(run.session(), cursor).await?;
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk?;
        screen.show(&chunk);
        if chunk.chunk.kind.ends_run() {
            break;
        }
    }
    println!("-- on the screen --\n{}", screen.text());
    Ok(())
}

/// The model that is configured, else the script.
fn model() -> Result<(String, Arc<dyn LlmAdapter>)> {
    let registry = ProviderRegistry::from_env()?;
    if registry.is_empty() {
        eprintln!("no model is configured: a script plays it");
        return Ok(("script".to_owned(), Arc::new(script())));
    }
    let default = registry.model("").map(|model| model.to_string());
    let default = default.unwrap_or_else(|_| "openai:gpt-4.1-mini".to_owned());
    let name = std::env::var("HELIX_MODEL").unwrap_or(default);
    eprintln!("the model is {name}");
    Ok((name, Arc::new(registry)))
}

fn script() -> ScriptedLlm {
    let story = "Once upon a time there was a log. It only ever grew. And if it has not been \
                 deleted, it grows to this day.";
    let replies = [Reply::tool_call("find_book", json!({})), Reply::text(story)];
    ScriptedLlm::new(replies).pace(Duration::from_millis(20))
}
