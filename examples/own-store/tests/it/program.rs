//! Runs the example as a user would, in several processes.

use helix_agents::id::SessionId;
use helix_agents::session::load;
use helix_agents_example_own_store::FileStore;
use tokio::process::Command;

#[tokio::test]
async fn the_next_process_continues_the_conversation() {
    let folder = tempfile::tempdir().unwrap();
    let run = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_helix-agents-example-own-store"));
        for name in ["OPENAI_API_KEY", "OPENAI_BASE_URL", "HELIX_MODEL"] {
            command.env_remove(name);
        }
        command.current_dir(folder.path()).output()
    };
    let stdout = String::from_utf8(run().await.unwrap().stdout).unwrap();
    assert_eq!(stdout, "You have greeted me once.\nturn 1\n");
    let stdout = String::from_utf8(run().await.unwrap().stdout).unwrap();
    assert_eq!(stdout, "You have greeted me 2 times.\nturn 2\n");
}

/// Concurrent processes on one file do not overwrite each other's records.
#[tokio::test]
async fn concurrent_processes_share_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut children = Vec::new();
    for _ in 0..4 {
        let mut command = Command::new(env!("CARGO_BIN_EXE_helix-agents-example-own-store"));
        for name in ["OPENAI_API_KEY", "OPENAI_BASE_URL", "HELIX_MODEL"] {
            command.env_remove(name);
        }
        command.current_dir(folder.path()).kill_on_drop(true);
        children.push(command.output());
    }
    let mut completed = 0;
    for output in futures_util::future::join_all(children).await {
        let output = output.unwrap();
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
