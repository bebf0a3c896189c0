//! The samples of the repository, played through the adapters: as they are, and mutated.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/samples");

/// Runs the program, and returns its output.
#[track_caller]
fn play(arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_helix-cassettes"));
    let output = program.args(arguments).current_dir(folder.path()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    text
}

#[test]
fn the_adapters_read_what_the_samples_mean() {
    let text = play(&[SAMPLES]);
    assert!(text.starts_with("21 replies"), "{text}");
}

#[test]
fn mutated_replies_break_no_rule() {
    let text = play(&["fuzz", SAMPLES, "--cases", "100"]);
    for format in [
        "openai_chat",
        "openai_responses",
        "anthropic_messages",
        "gemini_generate",
        "bedrock_converse",
    ] {
        assert!(text.contains(&format!("{format}: 100 cases")), "{text}");
    }
}
