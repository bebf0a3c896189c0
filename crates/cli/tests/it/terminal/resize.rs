//! Tests of resizing the terminal while text arrives.

use super::demo::has_status;
use super::tmux::Terminal;
use crate::support::{ModelServer, Scripted, TestDir};

const FIRST: &str = "This is the text: one two three four five six seven eight nine ten eleven";
const REST: &str = " twelve thirteen fourteen fifteen sixteen seventeen eighteen. The end.";

#[tokio::test]
async fn a_wider_window_loses_no_text() {
    let shown = resized(40, 100).await;
    assert!(shown.contains(&format!("{FIRST}{REST}")), "{shown}");
}

#[tokio::test]
async fn a_narrower_window_loses_no_text() {
    let shown = resized(100, 30).await;
    assert!(shown.contains(&format!("{FIRST}{REST}")), "{shown}");
}

/// The text of a terminal, without line ends, that was resized in the middle of a text.
async fn resized(from: u16, to: u16) -> String {
    let (dir, server) = (TestDir::new(), ModelServer::start([Scripted::Waits(FIRST, REST)]).await);
    let variables = server.variables();
    let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
    let terminal = Terminal::with(&dir, (from, 40), &variables).await;
    terminal.run("echo hello | helix chat").await;
    terminal.shows("ten eleven").await;
    terminal.resize(to).await;
    terminal.until("to wait".into(), |shown| has_status(shown, "waiting")).await;
    server.let_go();
    let shown = terminal.shows("1 step").await;
    shown.replace('\n', "")
}
