//! Executes every line of every `console` block in the documentation, each page in a separate folder.

use std::path::Path;
use std::process::Stdio;

use serde_json::json;
use tokio::process::Command;

use crate::support::TestDir;
use crate::support::server::{Reply, Request, Server, Turn};

/// Shell functions that run this binary for `cargo helix`, with a fast scripted demo.
const PRELUDE: &str = r#"
cargo() { test "$1" = helix && shift && helix "$@"; }
helix() {
    if test "$1" = demo; then shift; set -- demo --scripted --pace 0 "$@"; fi
    "$HELIX" "$@"
}
"#;

/// A code block of a page.
struct Block {
    language: String,
    lines: Vec<String>,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), open.take()) {
            (Some(language), None) => {
                open = Some(Block { language: language.to_owned(), lines: Vec::new() });
            }
            (Some(_), Some(block)) => blocks.push(block),
            (None, Some(mut block)) => {
                block.lines.push(line.to_owned());
                open = Some(block);
            }
            (None, None) => {}
        }
    }
    blocks
}

/// The model of the documentation: it writes one file if it has the tool, and then replies with text.
fn answer(request: &Request) -> Reply {
    if request.path().ends_with("/models") {
        let list = json!({ "object": "list", "data": [{ "id": "small" }] });
        return Reply::of(200, "content-type: application/json\r\n", &list.to_string());
    }
    let body = request.json();
    let has = |list: &str, pointer: &str, wanted: &str| {
        let items = body[list].as_array().into_iter().flatten();
        items.filter(|item| item.pointer(pointer) == Some(&json!(wanted))).count() > 0
    };
    if has("tools", "/function/name", "write_file") && !has("messages", "/role", "tool") {
        let arguments = json!({ "path": "note.txt", "text": "366 days" });
        return Turn::call("write_file", arguments).reply();
    }
    Turn::Text("It has 31,622,400 of them.").reply()
}

/// Executes a page: writes the files that it shows and runs its commands. Returns the number of commands.
async fn execute(page: &Path) -> usize {
    let name = page.file_name().unwrap().to_string_lossy();
    let dir = TestDir::new();
    let answers = Server::start(answer).await;
    dir.ask(&answers);
    let agents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/agents");
    for file in std::fs::read_dir(agents).unwrap() {
        let path = file.unwrap().path();
        if path.is_file() {
            dir.write(&path.file_name().unwrap().to_string_lossy(), std::fs::read(&path).unwrap());
        }
    }
    let mut commands = 0;
    for Block { language, lines } in blocks(&std::fs::read_to_string(page).unwrap()) {
        let first = lines.first().map(String::as_str).unwrap_or_default();
        if let (true, Some(file)) = (language == "toml", first.strip_prefix("# "))
            && !file.contains(' ')
            && file != "helix.toml"
        {
            dir.write(file, lines.join("\n"));
        }
        for line in lines.iter().filter(|_| language == "console") {
            let line = line.strip_prefix("$ ");
            let line =
                line.unwrap_or_else(|| panic!("{name}: a console block holds commands only"));
            let mut shell = dir.command(&[]);
            shell = as_shell(&shell, line);
            let output = shell.output().await.unwrap();
            assert!(output.status.success(), "{name}: `{line}` failed: {output:?}");
            commands += 1;
        }
    }
    commands
}

/// A shell with the same folder and environment as the binary.
fn as_shell(binary: &Command, line: &str) -> Command {
    let binary = binary.as_std();
    let mut shell = Command::new("sh");
    for (name, value) in binary.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.env("HELIX", env!("CARGO_BIN_EXE_helix"));
    shell.current_dir(binary.get_current_dir().unwrap()).kill_on_drop(true).stdin(Stdio::null());
    shell.args(["-euc", &format!("{PRELUDE}{line}")]);
    shell
}

#[tokio::test]
async fn every_command_of_the_guide_works() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src");
    let mut commands = 0;
    for entry in std::fs::read_dir(pages).unwrap() {
        let page = entry.unwrap().path();
        if page.extension().is_some_and(|extension| extension == "md") {
            commands += execute(&page).await;
        }
    }
    assert!(commands >= 8, "the documentation has too few commands: {commands}");
}
