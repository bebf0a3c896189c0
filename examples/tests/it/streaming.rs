//! Runs the example as a user would.

use crate::program::{example, output};

const STORY: &str = "Here it is. Once upon a time there was a log. It only ever grew. And if it has not been \
                     deleted, it grows to this day.\n";

#[tokio::test]
async fn a_disconnected_reader_ends_with_exactly_the_story() {
    let output = output(example(env!("CARGO_BIN_EXE_streaming"))).await;
    assert!(output.status.success(), "{output:?}");
    let stdout = String::from_utf8(output.stdout).unwrap();
    let (read, screen) = stdout.split_once("-- on the screen --\n").unwrap();
    assert_eq!(screen, STORY);
    assert!(
        read.contains("not on the shelf"),
        "the progress of the first attempt was not shown:\n{read}"
    );
    assert!(read.contains("discard"), "the first attempt was not discarded:\n{read}");
    assert!(read.contains("-- disconnected; continuing at "), "{read}");

    // No chunk was read twice.
    let numbers = read.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok());
    let numbers: Vec<u64> = numbers.collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{read}");
}
