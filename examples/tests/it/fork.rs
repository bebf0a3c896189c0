//! Runs the example as a user would, twice in one folder.

use crate::program::{example, lines};

#[tokio::test]
async fn both_sessions_continue_and_shared_calls_run_once() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let mut command = example(env!("CARGO_BIN_EXE_fork"));
        command.current_dir(folder.path());
        let expected = [
            "looking up trains to Bergen",
            "Take the 08:25.",
            "original: The 19:00 takes you back.",
            "fork:     Then take the 12:25.",
            "messages: 6 and 5, 3 of them shared",
            "tool calls: 1 and 0",
        ];
        assert_eq!(lines(command).await, expected);
    }
}
