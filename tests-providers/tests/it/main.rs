//! The player of provider traffic: the samples of the repository, as they are and mutated, and cases with differences.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod differences;

use std::process::Command;

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/samples");

/// The outcome of the program, and its output.
struct Played {
    is_success: bool,
    text: String,
}

/// Runs the program.
fn play(arguments: &[&str]) -> Played {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_helix-cassettes"));
    let output = program.args(arguments).current_dir(folder.path()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let text = text + &String::from_utf8_lossy(&output.stderr);
    Played { is_success: output.status.success(), text }
}

/// Runs the program, which has to find no differences, and returns its output.
#[track_caller]
fn play_samples(arguments: &[&str]) -> String {
    let Played { is_success, text } = play(arguments);
    assert!(is_success, "{text}");
    text
}

#[test]
fn the_adapters_read_what_the_samples_mean() {
    let text = play_samples(&[SAMPLES]);
    assert!(text.starts_with("21 replies"), "{text}");
}

#[test]
fn mutated_replies_break_no_rule() {
    let text = play_samples(&["fuzz", SAMPLES, "--cases", "100"]);
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
