//! Every route, with the types of its response.

use futures_util::StreamExt as _;
use helix_agents_client::{ResumeRequest, SessionQuery, StartRequest, StopRequest, StreamEnd};
use helix_agents_core::budget::Budget;
use helix_agents_core::message::{Media, Message, UserMessage};
use helix_agents_core::session::RunStatus;
use helix_agents_core::store::SessionStatus;
use helix_agents_test::{Gate, Reply, ScriptedLlm};
use serde_json::json;

use crate::support::{World, rest, text_of};

fn start() -> StartRequest {
    StartRequest::new("clerk", "Go!").session("talk")
}

#[tokio::test]
async fn a_session_is_started_followed_read_forked_and_deleted() {
    let world = World::new(ScriptedLlm::new([Reply::text("Hello Ann.")])).await;
    let client = world.client();
    client.health().await.unwrap();
    assert_eq!(client.agents().await.unwrap(), ["clerk"]);

    let request = start().run("run-1").label("topic", "greetings").state(json!({ "mood": "fine" }));
    let started = client.start(request).await.unwrap();
    assert_eq!((started.session.as_str(), started.run.as_str()), ("talk", "run-1"));
    let mut chunks = client.follow(&started.session);
    assert_eq!(text_of(&rest(&mut chunks).await), "Hello Ann.");
    assert_eq!(chunks.end(), Some(StreamEnd::Ended));

    let status = client.status(&started.session).await.unwrap();
    assert_eq!(
        (status.summary.status, &*status.summary.state),
        (SessionStatus::Completed, "completed")
    );
    assert_eq!((&*status.summary.agent, &*status.summary.labels["topic"]), ("clerk", "greetings"));
    let run = status.last_run.unwrap();
    assert_eq!((run.run, run.status, run.turn), (started.run.clone(), RunStatus::Completed, 1));
    assert_eq!(run.output.unwrap().to_value(), "Hello Ann.");
    assert!(!status.can_resume && status.usage.steps == 1 && status.last_seq > 2);

    let details = client.session(&started.session).await.unwrap();
    assert!(
        matches!(&details.messages[..], [Message::User(_), Message::Assistant(_)]),
        "{details:?}"
    );
    assert_eq!(details.custom_state["mood"], "fine");
    assert_eq!(details.next_seq, Some(status.last_seq + 1));

    let session = client.load(&started.session).await.unwrap();
    assert_eq!(session.transcript().len(), 2);
    assert_eq!(session.position().version, status.summary.version);
    let checkpoints = client.checkpoints(&started.session).await.unwrap();
    assert_eq!(checkpoints, session.checkpoints());

    let fork =
        client.fork(&started.session, Some(checkpoints[0].version), Some(&"copy".into())).await;
    assert_eq!(fork.unwrap().as_str(), "copy");
    let generated = client.fork(&started.session, None, None).await.unwrap();
    client.delete(&generated).await.unwrap();
    assert!(
        client
            .delete(&generated)
            .await
            .unwrap_err()
            .is(helix_agents_core::error::ErrorCode::SessionNotFound)
    );
    let listed = client.sessions(&SessionQuery::new().agent("clerk")).await.unwrap();
    let listed: Vec<_> = listed.sessions.iter().map(|head| head.session.as_str()).collect();
    assert_eq!(listed, ["copy", "talk"]);
}

#[tokio::test]
async fn a_list_is_read_in_parts() {
    let world = World::new(ScriptedLlm::new((0..5).map(|_| Reply::text("x")))).await;
    let client = world.client();
    for number in 0..5 {
        let session = format!("talk-{number}");
        let start = StartRequest::new("clerk", "Go!").session(&*session);
        client.start(start.label("number", number.to_string())).await.unwrap();
        rest(&mut client.follow(&session.as_str().into())).await;
    }
    let (mut listed, mut query) = (Vec::new(), SessionQuery::new().limit(2));
    loop {
        let part = client.sessions(&query).await.unwrap();
        assert!(part.sessions.len() <= 2);
        listed.extend(part.sessions.into_iter().map(|head| head.session.to_string()));
        let Some(next) = part.next else { break };
        query = query.after(next);
    }
    assert_eq!(listed, ["talk-4", "talk-3", "talk-2", "talk-1", "talk-0"]);
    let labelled = client.sessions(&SessionQuery::new().label("number", "3")).await.unwrap();
    assert_eq!(labelled.sessions[0].session.as_str(), "talk-3");
    assert_eq!((labelled.sessions.len(), labelled.next), (1, None));
    let failed = SessionQuery::new().status(SessionStatus::Failed);
    assert_eq!(client.sessions(&failed).await.unwrap().sessions, []);
    assert_eq!(client.sessions(&SessionQuery::new().pending()).await.unwrap().sessions, []);
}

#[tokio::test]
async fn a_long_log_is_read_in_parts() {
    let world = World::new(ScriptedLlm::new((0..12).map(|_| Reply::text("x")))).await;
    let client = world.client();
    for _ in 0..12 {
        client.start(start()).await.unwrap();
        rest(&mut client.follow(&"talk".into())).await;
    }
    let (mut events, mut after) = (Vec::new(), 0);
    loop {
        let page = client.log(&"talk".into(), after, 3).await.unwrap();
        events.extend(page.events);
        let Some(next) = page.next else { break };
        after = next;
    }
    assert_eq!(client.events(&"talk".into()).await.unwrap(), events);
    let session = client.load(&"talk".into()).await.unwrap();
    assert_eq!((session.turn(), session.position().version), (12, events.len() as u64));
}

#[tokio::test]
async fn a_run_is_interrupted_resumed_with_a_message_and_aborted() {
    let (first, second) = (Gate::new(), Gate::new());
    let replies = [
        Reply::more_text("One.").at_gate(&first),
        Reply::text("Two."),
        Reply::text("Three.").at_gate(&second),
    ];
    let world = World::new(ScriptedLlm::new(replies)).await;
    let client = world.client();
    let started = client.start(start()).await.unwrap();
    first.reached().await;
    let stop = StopRequest::new("talk").run(started.run.clone()).reason("lunch");
    assert!(client.interrupt(stop.clone()).await.unwrap());
    first.open();
    let mut chunks = client.follow(&"talk".into());
    rest(&mut chunks).await;
    assert_eq!(chunks.end(), Some(StreamEnd::Paused));
    let run = client.status(&"talk".into()).await.unwrap().last_run.unwrap();
    assert_eq!((run.status, run.reason.as_deref()), (RunStatus::Interrupted, Some("lunch")));
    assert!(!client.interrupt(stop).await.unwrap());

    let request = ResumeRequest::new("talk").message("Go on.").after(started.run);
    let resumed = client.resume(request.budget(Budget::new().steps(9))).await.unwrap();
    rest(&mut client.follow(&"talk".into())).await;
    client.start(start()).await.unwrap();
    second.reached().await;
    assert!(client.abort(StopRequest::new("talk")).await.unwrap());
    rest(&mut client.follow(&"talk".into())).await;
    let runs = client.session(&"talk".into()).await.unwrap().runs;
    assert_eq!(runs[1].run, resumed.run);
    let statuses: Vec<_> = runs.iter().map(|run| run.status).collect();
    assert_eq!(statuses, [RunStatus::Interrupted, RunStatus::Completed, RunStatus::Aborted]);
}

#[tokio::test]
async fn a_queued_message_reaches_the_model_once() {
    let gate = Gate::new();
    let replies = [Reply::text("One.").at_gate(&gate), Reply::text("Two.")];
    let world = World::new(ScriptedLlm::new(replies)).await;
    let client = world.client();
    client.start(start()).await.unwrap();
    gate.reached().await;
    for _ in 0..3 {
        client.send_message_once(&"talk".into(), "And this?", "note-1".into()).await.unwrap();
    }
    let chart = Media::from_url("image/png", "https://example.com/c.png");
    client.send_message(&"talk".into(), UserMessage::new("And that?").attach(chart)).await.unwrap();
    gate.open();
    rest(&mut client.follow(&"talk".into())).await;
    let seen = format!("{:?}", world.model.seen()[1].messages);
    assert_eq!(
        (seen.matches("And this?").count(), seen.matches("And that?").count()),
        (1, 1),
        "{seen}"
    );
    assert!(seen.contains("c.png"));
}

#[tokio::test]
async fn a_stream_starts_anywhere_and_may_leave_out_children() {
    let world = World::new(ScriptedLlm::new([Reply::text("Hello Ann.")]).chunk_size(1)).await;
    let client = world.client();
    client.start(start()).await.unwrap();
    let all = rest(&mut client.follow(&"talk".into())).await;
    let options = helix_agents_client::FollowOptions::default().from(5).without_children();
    let mut part = client.follow_with(&"talk".into(), options);
    assert_eq!(rest(&mut part).await, all[4..]);
    assert!(part.next().await.is_none());
}
