//! A live stream reader that is disconnected, continues where it stopped, and removes the output of
//! discarded attempts: here, the progress messages of a failed tool call. The example uses the
//! configured model, or a scripted one if none is configured.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example prints what it reads")]

mod screen;

use std::time::Duration;

use anyhow::Result;
use futures_util::StreamExt as _;
use helix_agents::llm::RetryPolicy;
use helix_agents::prelude::*;
use helix_agents_test::{Reply, ScriptedLlm};
use serde_json::json;

use screen::Screen;

/// The number of chunks after which the reader is disconnected.
const DISCONNECT_AFTER: usize = 7;

/// Looks for the book of stories. The first attempt may fail.
#[tool]
async fn find_book(cx: &ToolContext) -> Result<&'static str, ToolError> {
    if cx.attempt() == 1 {
        cx.progress("It is not on the shelf. ", None);
        return Err(ToolError::new("the book is not on the shelf").retryable());
    }
    cx.progress("Here it is. ", None);
    Ok("a book of stories about logs")
}

#[tokio::main]
async fn main() -> Result<()> {
    let models = ProviderRegistry::from_env()?.or_adapter("script", script());
    eprintln!("the model is {}", models.default_model()?);
    let agent = Agent::builder("teller")
        .system_prompt("You find the book of stories, then tell a very short one from it.")
        .tool(find_book.into_tool().retry(RetryPolicy::default()))
        .build()?;
    let store = MemoryStore::new();
    let runtime = LocalRuntime::builder().store(store.clone()).llm(models).build()?;
    let run = runtime.start(&agent, "A story, please.", ExecuteOptions::default()).await?;

    // A reader in another process would open the same store by its path or URL.
    let mut screen = Screen::default();
    // The cursor is the only state that a reader needs to continue.
    let mut cursor = 1;

    let mut chunks = store.read(run.session(), cursor).await?;
    for _ in 0..DISCONNECT_AFTER {
        if let Some(chunk) = chunks.next().await {
            cursor = screen.show(&chunk?) + 1;
        }
    }
    drop(chunks);
    println!("-- disconnected; continuing at {cursor} --");

    let mut chunks = store.read(run.session(), cursor).await?;
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

/// Returns a scripted model. It streams its replies slowly, so that there is time to disconnect.
fn script() -> ScriptedLlm {
    let story = "Once upon a time there was a log. It only ever grew. And if it has not been \
                 deleted, it grows to this day.";
    let replies = [Reply::tool_call("find_book", json!({})), Reply::text(story)];
    ScriptedLlm::new(replies).pace(Duration::from_millis(20))
}
