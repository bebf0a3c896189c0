//! Incomplete files and files of other programs.

use std::path::Path;

use helix_agents::error::ErrorCode;
use helix_agents::prelude::*;
use helix_agents::session::load;
use helix_agents_examples::own_store::FileStore;
use helix_agents_test::{Reply, ScriptedLlm};

/// Runs one more turn of the session with a newly opened store. Returns the turn's number.
async fn turn(path: &Path) -> u32 {
    let store = FileStore::open(path).await.unwrap();
    let model = ScriptedLlm::new((0..9).map(|_| Reply::text("hello")));
    let runtime = LocalRuntime::builder().store(store).llm(model).build().unwrap();
    let agent = Agent::builder("greeter").system_prompt("You greet.").build().unwrap();
    let options = ExecuteOptions::default().session("s");
    let run = runtime.start(&agent, "hello", options).await.unwrap();
    run.result().await.unwrap().into_output().unwrap();
    let turn = run.load_session().await.unwrap().turn();
    drop(run);
    runtime.shutdown().await;
    turn
}

#[tokio::test]
async fn a_truncated_last_record_does_not_affect_earlier_ones() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.log");
    assert_eq!(turn(&path).await, 1);
    let whole = std::fs::read(&path).unwrap();
    assert_eq!(turn(&path).await, 2);
    let longer = std::fs::read(&path).unwrap();
    // Simulate a writer that was killed during the first record after `whole`.
    for cut in [1, 15, 16, 17, 200] {
        std::fs::write(&path, &longer[..whole.len() + cut]).unwrap();
        let store = FileStore::open(&path).await.unwrap();
        let session = load(&store, &SessionId::from("s")).await.unwrap();
        assert_eq!((session.turn(), session.transcript().len()), (1, 2), "cut after {cut}");
        drop(store);
        assert_eq!(turn(&path).await, 2, "the file can still be written to");
        assert_eq!(turn(&path).await, 3, "the new turn was recorded");
    }
}

#[tokio::test]
async fn a_file_of_another_program_is_refused_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.log");
    std::fs::write(&path, "a shopping list, longer than the first line").unwrap();
    let error = FileStore::open(&path).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreForeign);
    let kept = std::fs::read_to_string(&path).unwrap();
    assert_eq!(kept, "a shopping list, longer than the first line");

    let error = FileStore::open(folder.path()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ConfigInvalid);
}
