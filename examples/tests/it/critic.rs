//! Runs the example as a user would.

use crate::program::{example, lines};

#[tokio::test]
async fn the_critic_reviews_two_versions() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = example(env!("CARGO_BIN_EXE_critic"));
    command.current_dir(folder.path());
    let lines = lines(command).await;
    assert!(lines[0].ends_with("-agent-rex started"), "{lines:?}");
    let expected = [
        "2 of 5: This rhyme is a cliché.",
        "4 of 5: Better: it has a mood now.",
        "Roses are red,",
        "the evening too.",
        "rex reviewed 2 versions",
        "5 model calls in total",
    ];
    assert_eq!(lines[1..], expected);
}
