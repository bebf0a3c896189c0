//! Replays of recorded histories. The workflow must issue the same commands in the same order. Otherwise running
//! workflows stop when a new version is deployed.

use std::path::Path;

use temporalio_client::WorkflowHistory;
use temporalio_sdk::workflow_replayer::{
    WorkflowReplayError, WorkflowReplayFailure, WorkflowReplayer, WorkflowReplayerOptions,
};

use crate::workflow::AgentRun;

/// The histories of this version of the workflow and of all earlier ones.
const FOLDER: &str = "histories/v1";

fn recorded(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(FOLDER);
    std::fs::read_to_string(folder.join(name).with_extension("json")).unwrap()
}

async fn replay(json: &str) -> Result<(), WorkflowReplayError> {
    let options = WorkflowReplayerOptions::new().register_workflow::<AgentRun>().unwrap().build();
    let history = WorkflowHistory::from_json(json.as_bytes()).unwrap();
    WorkflowReplayer::new(options).unwrap().replay_workflow(history).await
}

#[tokio::test]
async fn every_recorded_history_replays() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(FOLDER);
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let json = std::fs::read_to_string(&path).unwrap();
        replay(&json).await.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        count += 1;
    }
    assert!(count >= 6, "{count} histories");
}

/// Activity ids contain the work item, so a workflow that requests a different item is detected.
#[tokio::test]
async fn a_history_of_another_workflow_does_not_replay() {
    let json = recorded("plain").replace("\"model/1\"", "\"model/2\"");
    let error = replay(&json).await.unwrap_err();
    assert!(
        matches!(error, WorkflowReplayError::Replay(WorkflowReplayFailure::Nondeterminism { .. })),
        "{error}"
    );
}
