//! Processes that die.

use super::process::Other;
use super::support::{Folder, add, create, id, ids};

#[tokio::test]
async fn what_a_killed_process_was_told_is_there() {
    let folder = Folder::new();
    let store = folder.open().await;
    create(&store, &id("shared")).await;
    for round in 1..=5_usize {
        let before = ids(&store, &id("shared")).await.len();
        let mut other = Other::start("append for ever", "", &folder);
        other.go();
        let mut told: Vec<String> = Vec::new();
        while told.len() < 7 * round {
            told.extend(appended(&other.lines.next().unwrap().unwrap()));
        }
        told.extend(other.kill().iter().filter_map(|line| appended(line)));

        let ids = ids(&store, &id("shared")).await;
        let (_, new) = ids.split_at(before);
        assert!(new.starts_with(&told), "told: {told:?}, there: {new:?}");
        assert!(new.len() <= told.len() + 1, "more than one append was under way");
    }
    // And the log goes on.
    let mut position = super::support::position(&store, &id("shared")).await;
    add(&store, &id("shared"), &mut position, "after").await;
}

fn appended(line: &str) -> Option<String> {
    line.strip_prefix("appended ").map(str::to_owned)
}
