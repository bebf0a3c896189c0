//! Runs the example as a user would, in several processes.

use helix_agents::id::SessionId;
use helix_agents::session::load;
use helix_agents_examples::own_store::FileStore;

use crate::program::{example, lines, output};

#[tokio::test]
async fn the_next_process_continues_the_conversation() {
    let folder = tempfile::tempdir().unwrap();
    let run = || {
        let mut command = example(env!("CARGO_BIN_EXE_own-store"));
        command.current_dir(folder.path());
        lines(command)
    };
    assert_eq!(run().await, ["You have greeted me once.", "turn 1"]);
    assert_eq!(run().await, ["You have greeted me 2 times.", "turn 2"]);
}

/// Concurrent processes on one file do not overwrite each other's records.
#[tokio::test]
async fn concurrent_processes_share_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut children = Vec::new();
    for _ in 0..4 {
        let mut command = example(env!("CARGO_BIN_EXE_own-store"));
        command.current_dir(folder.path());
        children.push(output(command));
    }
    let mut completed = 0;
    for output in futures_util::future::join_all(children).await {
        let stderr = String::from_utf8_lossy(&output.stderr);
        match output.status.success() {
            true => completed += 1,
            // Another process was executing its turn.
            false => assert!(
                stderr.contains("already_running") || stderr.contains("run_unfinished"),
                "{stderr}"
            ),
        }
    }
    let store = FileStore::open(folder.path().join("sessions.log")).await.unwrap();
    let session = load(&store, &SessionId::from("greetings")).await.unwrap();
    assert!(completed >= 1);
    assert_eq!(session.turn(), completed);
}
