//! Tests of `helix demo` in a terminal.

use rustix::process::{Signal, kill_process};

use super::tmux::Terminal;
use crate::support::TestDir;

/// The characters that a status line starts with.
const FRAMES: &str = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏";

/// The status line, if there is one.
pub(super) fn status(shown: &str) -> Option<&str> {
    shown.lines().rev().find(|line| line.starts_with(|c| FRAMES.contains(c)))
}

/// Returns `true` if the status line contains these words.
pub(super) fn has_status(shown: &str, words: &str) -> bool {
    status(shown).is_some_and(|line| line.contains(words))
}

#[tokio::test]
async fn a_demo_is_shown_as_it_happens_and_leaves_no_status_line() {
    let dir = TestDir::new();
    let terminal = Terminal::open(&dir).await;
    terminal.run("helix demo --scripted --pace 20").await;
    terminal.until("to show a tool".into(), |shown| has_status(shown, "look_up")).await;
    assert_eq!(terminal.exit().await, 0);
    let shown = terminal.text().await;
    assert_eq!(status(&shown), None, "{shown}");
}

#[tokio::test]
async fn a_demo_ends_with_the_report_in_colour() {
    let dir = TestDir::new();
    let terminal = Terminal::with(&dir, (90, 100), &[]).await;
    terminal.run("helix demo --scripted --pace 3").await;
    terminal.shows("log      helix sessions log").await;
    let shown = terminal.text().await;
    assert_eq!(status(&shown), None, "{shown}");
    assert!(shown.contains("Two moons are larger than Mercury"), "{shown}");
    for words in ["  → rank {", "  ✓ rank (", "step 5 completed", "completed in "] {
        assert!(shown.contains(words), "{words} is not in {shown}");
    }
    let colored = terminal.colored().await;
    assert!(colored.contains("[32m✓"), "{colored}");
    assert_eq!(terminal.exit().await, 0);
}

#[tokio::test]
async fn no_color_leaves_the_status_line_and_nothing_coloured() {
    let dir = TestDir::new();
    let terminal = Terminal::with(&dir, (90, 100), &[("NO_COLOR", "1")]).await;
    terminal.run("helix demo --scripted --pace 20").await;
    terminal.until("to show a tool".into(), |shown| has_status(shown, "look_up")).await;
    terminal.keys(&["C-c"]).await;
    terminal.shows("log      helix sessions log").await;
    let colored = terminal.colored().await;
    assert!(!colored.contains('\u{1b}'), "{colored}");
    assert_eq!(terminal.exit().await, 4);
}

#[tokio::test]
async fn ctrl_c_interrupts_and_returns_to_the_shell() {
    let dir = TestDir::new();
    let terminal = Terminal::open(&dir).await;
    terminal.run("helix demo --scripted --pace 40").await;
    terminal.until("to show a tool".into(), |shown| has_status(shown, "rank")).await;
    terminal.keys(&["C-c"]).await;
    terminal.shows("interrupting at the end of this step").await;
    let shown = terminal.shows("resume   helix resume ses_").await;
    assert_eq!(status(&shown), None, "{shown}");
    assert_eq!(terminal.exit().await, 4);
}

#[tokio::test]
async fn sigterm_returns_to_the_shell() {
    let dir = TestDir::new();
    let terminal = Terminal::open(&dir).await;
    let demo = terminal.start("helix demo --scripted --pace 100").await;
    terminal.until("to show a tool".into(), |shown| has_status(shown, "rank")).await;
    kill_process(demo, Signal::TERM).unwrap();
    let shown = terminal.shows("stopped; to resume: helix resume ses_").await;
    assert_eq!(status(&shown), None, "{shown}");
    assert_eq!(terminal.exit().await, 4);
}

#[tokio::test]
async fn text_continues_in_its_line_after_a_pause() {
    let dir = TestDir::new();
    let terminal = Terminal::open(&dir).await;
    terminal.run("helix demo --scripted --pace 700").await;
    let paused = |shown: &str| shown.contains("\nTo c") && has_status(shown, "waiting");
    terminal.until("to pause in its text".into(), paused).await;
    terminal.shows("To compare the moons with").await;
    abort(&terminal).await;
}

#[tokio::test]
async fn the_status_line_is_cut_to_the_width_after_a_resize() {
    let dir = TestDir::new();
    let terminal = Terminal::with(&dir, (60, 40), &[]).await;
    terminal.run("helix demo --scripted --pace 100").await;
    terminal.until("to show tools".into(), |shown| has_status(shown, "look_up")).await;
    terminal.resize(16).await;
    let cut = |shown: &str| status(shown).is_some_and(|line| line.chars().count() == 15);
    let shown = terminal.until("to cut the line".into(), cut).await;
    let lines = shown.lines().filter(|line| line.starts_with(|c| FRAMES.contains(c)));
    assert_eq!((lines.count(), shown.contains("· 0:")), (1, false), "{shown}");
    abort(&terminal).await;
}

async fn abort(terminal: &Terminal<'_>) {
    terminal.keys(&["C-c"]).await;
    terminal.shows("Ctrl-C again aborts").await;
    terminal.keys(&["C-c"]).await;
    terminal.shows("aborted in").await;
    assert_eq!(terminal.exit().await, 4);
}
