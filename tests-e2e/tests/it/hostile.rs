//! Hostile conditions: ids of any text, messages of ten megabytes, sessions of fifty thousand events, clocks that are
//! an hour off, and processes that all start at the same time.

mod clocks;
mod sizes;

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use helix_agents::RuntimeBuilder as _;
use helix_agents::error::ErrorCode;
use helix_agents::executor::{AgentExecutor as _, ExecuteOptions};
use helix_agents::id::{CallId, MAX_ID_BYTES, SessionId};
use helix_agents::runtime_local::LocalRuntime;
use helix_agents::session::RunStatus;
use helix_agents::store::{Page, SessionFilter};
use helix_agents_conformance::normalise;
use helix_agents_testkit::trees::Stores;
use helix_agents_tests_e2e::scenarios::{self, Scenario};
use helix_agents_tests_e2e::stores::{self, Kind, Place};

use crate::kill_matrix::logs_text;
use crate::support::{Story, logs_of, on_each_store, stream_of};
use crate::sweep::blocking;

on_each_store! {
    Everywhere ids_of_any_text_name_sessions_and_their_streams(kind) {
        super::blocking().block_on(super::ids_of_any_text(kind));
    }
    Everywhere ids_that_nobody_may_choose_are_refused(kind) {
        super::blocking().block_on(super::reserved_ids_are_refused(kind));
    }
    Everywhere eight_processes_begin_one_store_and_one_session_at_once(kind) {
        super::eight_processes_at_once(kind);
    }
    Everywhere messages_of_ten_megabytes_are_said_and_heard(kind) {
        super::blocking().block_on(super::sizes::ten_megabytes(kind));
    }
    Everywhere a_session_of_fifty_thousand_events_goes_on(kind) {
        super::sizes::fifty_thousand_events(kind);
    }
    Everywhere an_hour_between_the_clocks_of_two_processes_changes_nothing(kind) {
        super::blocking().block_on(super::clocks::an_hour_changes_nothing(kind));
    }
}

/// A new store and its folder.
struct TestStore {
    store: Stores,
    folder: tempfile::TempDir,
    _place: Place,
}

impl TestStore {
    async fn of(kind: &Kind) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = kind.place(folder.path());
        Self { store: stores::open(&place.url).await.unwrap(), folder, _place: place }
    }

    fn trace(&self) -> std::path::PathBuf {
        self.folder.path().join("trace")
    }
}

fn scenario(name: &str, trace: &Path) -> Scenario {
    scenarios::named(name, trace).unwrap()
}

fn runtime(store: &Stores, scenario: &Scenario) -> LocalRuntime {
    LocalRuntime::builder()
        .state_store(Arc::clone(&store.state))
        .stream_manager(Arc::clone(&store.streams))
        .llm_adapter(Arc::clone(&scenario.llm))
        .registry(scenario.registry.clone())
        .build()
        .unwrap()
}

/// Runs a session with a child under each id: all must be the same except for the id.
async fn ids_of_any_text(kind: &Kind) {
    let test_store = TestStore::of(kind).await;
    let child = scenario("child", &test_store.trace());
    let runtime = runtime(&test_store.store, &child);
    // The longest id whose child's id, which starts with it, is still valid.
    let long = "\u{fc}".repeat((MAX_ID_BYTES - "-sub-1.0".len()) / 2);
    let texts = [
        "story",
        "it's \"ours\" `now`; DROP TABLE sessions; --",
        "back\\slash %percent _under *star ? $1 :name {tag}",
        "\u{65e5}\u{672c}\u{8a9e} \u{1f980} e\u{301} \u{202e}",
        " ",
        &long,
    ];
    let mut results: Vec<String> = Vec::new();
    for text in texts {
        let session = SessionId::validated(text).unwrap();
        let options = ExecuteOptions::default().session(session.clone());
        let handle = runtime.execute(Arc::clone(&child.agent), "go".into(), options).await.unwrap();
        assert_eq!(handle.result().await.unwrap().status, RunStatus::Completed, "{text:?}");
        let filter = SessionFilter::new().root(session.clone());
        let family = test_store.store.state.list(&filter, &Page::default()).await.unwrap();
        assert_eq!(family.len(), 2, "{text:?} and its child");
        let logs = logs_of(&*test_store.store.state).await.into_iter();
        let logs = logs.filter(|(id, _)| family.iter().any(|head| head.session == *id)).collect();
        let stream = normalise::stream(&stream_of(&*test_store.store.streams, &session).await);
        let below = SessionId::of_call(&session, &CallId::from("1.1"));
        let all = format!("{}\n{stream}", logs_text(&logs))
            .replace(below.as_str(), "the child")
            .replace(&format!("below {text} for"), "below its parent for");
        let mut lines: Vec<_> = all.lines().collect();
        // Logs are in the order of their ids.
        lines.sort_unstable();
        results.push(lines.join("\n"));
    }
    for (text, is) in texts.iter().zip(&results) {
        assert_eq!(is, results.first().unwrap(), "{text:?}");
    }
    for text in texts {
        assert!(test_store.store.state.delete(&SessionId::from(text)).await.unwrap(), "{text:?}");
    }
    assert!(logs_of(&*test_store.store.state).await.is_empty());
}

/// Invalid ids are refused with their error code, and nothing is written.
async fn reserved_ids_are_refused(kind: &Kind) {
    let test_store = TestStore::of(kind).await;
    let plain = scenario("plain", &test_store.trace());
    let runtime = runtime(&test_store.store, &plain);
    let long = "x".repeat(MAX_ID_BYTES + 1);
    for text in ["", "a\0b", "a\nb", "a-sub-1.0", "a-agent-rex", &long, &"\u{fc}".repeat(5_000)] {
        let options = ExecuteOptions::default().session(SessionId::from(text));
        let refused = runtime.execute(Arc::clone(&plain.agent), "go".into(), options).await;
        assert_eq!(refused.unwrap_err().code(), ErrorCode::IdInvalid, "{text:?}");
    }
    assert!(logs_of(&*test_store.store.state).await.is_empty());
}

/// The store that all processes open is created once, and the session that all of them run is run once.
fn eight_processes_at_once(kind: &'static Kind) {
    let expected = Story::new(kind, "plain", "per_effect");
    drop(expected.run_to_end(None));
    let story = Story::new(kind, "plain", "per_effect");
    let spawn = |_| {
        let mut command = story.command("tell");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let processes: Vec<_> = (0..8).map(spawn).collect();
    for process in processes {
        let output = process.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let logs = |story: &Story| logs_text(&blocking().block_on(story.logs()));
    assert_eq!(logs(&story), logs(&expected));
    assert!(story.trace().values().all(|keys| keys.len() == 1), "{:?}", story.trace());
}
