//! Scenarios for images and other files in user messages and tool results.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use expect_test::expect;
use helix_agents_core::agent::AgentBuilder;
use helix_agents_core::executor::ResumeOptions;
use helix_agents_core::hooks::{AgentHooks, HookContext, HookResult};
use helix_agents_core::message::{Media, Message, UserMessage};
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use helix_agents_test::{Gate, Reply, ScriptedLlm};

use super::support::{
    S, Word, all_crashed, check_log, check_stream, completes, resume, start_run, teller, word,
};
use super::{RuntimeHarness, World};
use crate::normalise;

/// Returns a message with a file between two texts and another file at its end.
fn message() -> UserMessage {
    let picture = Media::from_bytes("image/png", &[0x89, b'P', b'N', b'G', 0, 0xff]);
    UserMessage::new("Look: ")
        .attach(picture.name("chart.png"))
        .text("and read.")
        .attach(Media::from_url("application/pdf", "https://example.com/a.pdf"))
}

/// Returns an agent with a tool that draws its word, and fails without one after it has drawn.
fn artist() -> AgentBuilder {
    let draw = Tool::function("draw", "Draws a word.", |input: Word, cx: ToolContext| async move {
        cx.attach(Media::from_bytes("image/png", format!("<{}>", input.word).as_bytes()));
        if input.word.is_empty() {
            return Err(ToolError::new("nothing to draw"));
        }
        Ok(format!("drew {}", input.word))
    });
    teller().tool(draw)
}

fn draws() -> Reply {
    Reply::calls([("draw", word("a")), ("draw", word(""))])
}

/// Hooks that note the number of files of each message.
#[derive(Clone, Default)]
struct FileCounter(Arc<Mutex<Vec<usize>>>);

#[async_trait]
impl AgentHooks for FileCounter {
    async fn on_message(&self, _: &HookContext, message: &Message) -> HookResult {
        self.0.lock().unwrap().push(match message {
            Message::User(user) => user.attachments.len(),
            Message::Tool(result) => result.attachments.len(),
            Message::System { .. } | Message::Assistant(_) => 0,
        });
        Ok(())
    }
}

/// Compares the n-th request that this model received: it has the files of the message and of the successful call.
fn check_request(llm: &ScriptedLlm, number: usize) {
    expect![[r#"
        user "Look: and read."
          file {"at":6,"type":"image/png","base64":"iVBORwD/","name":"chart.png"}
          file {"at":15,"type":"application/pdf","url":"https://example.com/a.pdf"}
        assistant None draw({"word":"a"}) draw({"word":""})
        tool draw "drew a"
          file {"type":"image/png","base64":"PGE+"}
        tool draw {"error":"nothing to draw"}
    "#]]
    .assert_eq(&normalise::transcript(&llm.seen()[number].messages));
}

/// The model reads the files of a message and of a tool result in the next request, and hooks receive them. Files of a
/// failed call are discarded. The stream shows no files.
pub async fn files_of_messages_and_results_are_sent_to_the_model(harness: &impl RuntimeHarness) {
    let files = FileCounter::default();
    let agent = artist().hooks(files.clone()).build().unwrap();
    let llm = ScriptedLlm::new([draws(), Reply::text("Nice.")]);
    let executor = harness.boot(World::new(llm.clone())).await;
    let handle = start_run(&*executor, &agent, message()).await;
    completes(&handle).await;
    check_request(&llm, 1);
    assert_eq!(*files.0.lock().unwrap(), [2, 0, 1, 0, 0]);
    check_log(
        harness,
        &expect![[r#"
            session teller state=null
            run Execute
            user "Look: and read."
              file {"at":6,"type":"image/png","base64":"iVBORwD/","name":"chart.png"}
              file {"at":15,"type":"application/pdf","url":"https://example.com/a.pdf"}
            step 1 reply ToolUse in=10 out=5
              call 1.0 draw({"word":"a"})
              call 1.1 draw({"word":""})
              result 1.0 "drew a"
              file {"type":"image/png","base64":"PGE+"}
              result 1.1 error tool_failed: nothing to draw
            step 1 closed
            step 2 reply EndTurn in=10 out=5 "Nice."
            step 2 closed
            end completed "Nice."
        "#]],
    )
    .await;
    check_stream(
        &handle,
        &expect![[r#"
            run_started
            tool_arg 0 draw
            args {"word":"a"}
            tool_arg 1 draw
            args {"word":""}
            tool_start 1.0 draw {"word":"a"}
            tool_end 1.0 success=true "drew a"
            tool_start 1.1 draw {"word":""}
            tool_error 1.1 tool_failed: nothing to draw
            tool_end 1.1 success=false
            checkpoint
            text Nice.
            checkpoint
            output "Nice."
            run_ended completed
        "#]],
    )
    .await;
}

/// A process crashes in the model call after a tool returned a file. The request of the next process has the same
/// files, and so has a request of the next turn.
pub async fn files_survive_the_process(harness: &impl RuntimeHarness) {
    let (agent, gate) = (artist().build().unwrap(), Gate::new());
    let held = ScriptedLlm::new([draws(), Reply::text("Lost.").at_gate(&gate)]);
    let executor = harness.boot(World::new(held)).await;
    start_run(&*executor, &agent, message()).await;
    gate.reached().await;
    all_crashed(harness).await;
    let llm = ScriptedLlm::new([draws(), Reply::text("Nice."), Reply::text("Bye.")]);
    let executor = harness.boot(World::new(llm.clone())).await;
    completes(&resume(&*executor, &agent).await.unwrap()).await;
    check_request(&llm, 0);
    completes(&start_run(&*executor, &agent, "bye").await).await;
    let seen = llm.seen();
    let earlier = &seen[1].messages[..seen[0].messages.len()];
    assert_eq!(normalise::transcript(earlier), normalise::transcript(&seen[0].messages));
}

/// A file that is sent to a session in progress enters the transcript with its message.
pub async fn a_file_that_is_sent_to_a_running_session_is_read(harness: &impl RuntimeHarness) {
    let (agent, gate) = (teller().build().unwrap(), Gate::new());
    let llm = ScriptedLlm::new([Reply::text("Yes?").at_gate(&gate), Reply::text("Nice.")]);
    let executor = harness.boot(World::new(llm.clone())).await;
    let handle = start_run(&*executor, &agent, "go").await;
    gate.reached().await;
    executor.send_message(&S.into(), message()).await.unwrap();
    gate.open();
    completes(&handle).await;
    expect![[r#"
        user "go"
        assistant Some("Yes?")
        user "Look: and read."
          file {"at":6,"type":"image/png","base64":"iVBORwD/","name":"chart.png"}
          file {"at":15,"type":"application/pdf","url":"https://example.com/a.pdf"}
    "#]]
    .assert_eq(&normalise::transcript(&llm.seen()[1].messages));
}

/// A file in the message of a resume enters the transcript with its message.
pub async fn a_file_that_is_sent_with_a_resume_is_read(harness: &impl RuntimeHarness) {
    let (agent, gate) = (teller().build().unwrap(), Gate::new());
    let held = ScriptedLlm::new([Reply::text("Lost.").at_gate(&gate)]);
    let executor = harness.boot(World::new(held)).await;
    start_run(&*executor, &agent, "go").await;
    gate.reached().await;
    all_crashed(harness).await;
    let llm = ScriptedLlm::new([Reply::text("Nice.")]);
    let executor = harness.boot(World::new(llm.clone())).await;
    let options = ResumeOptions::default().message(message());
    let handle = executor.resume(agent.erased(), &S.into(), options).await.unwrap();
    completes(&handle).await;
    expect![[r#"
        user "go"
        user "Look: and read."
          file {"at":6,"type":"image/png","base64":"iVBORwD/","name":"chart.png"}
          file {"at":15,"type":"application/pdf","url":"https://example.com/a.pdf"}
    "#]]
    .assert_eq(&normalise::transcript(&llm.seen()[0].messages));
}
