//! Malicious agent files are rejected quickly.

use std::fs;
use std::os::unix::fs::symlink;

use super::{AgentFile, Fixture, built};

#[track_caller]
fn refused(text: &str, because: &str) {
    let problem = Fixture::new(text).agent().unwrap_err();
    assert!(problem.contains(because), "{problem}");
}

fn with(more: &str) -> String {
    format!("name = \"a\"\nprompt = \"b\"\n{more}\n")
}

#[test]
fn a_file_of_a_hundred_megabytes_is_refused_unread() {
    let fixture = Fixture::new("");
    let path = fixture.path("agent.toml");
    fs::File::options().write(true).open(&path).unwrap().set_len(100 << 20).unwrap();
    let error = AgentFile::read(&path).unwrap_err();
    assert!(error.message().contains("it is larger than 262144 bytes"), "{error}");
}

#[test]
fn nesting_without_end_is_refused() {
    for text in [
        format!("x = {}", "[".repeat(100_000)),
        format!("x = {}1{}", "{a=".repeat(50_000), "}".repeat(50_000)),
        format!("{}a = 1", "a.".repeat(100_000)),
        format!("[{}a]", "a.".repeat(100_000)),
        format!("[[{}a]]", "a.".repeat(100_000)),
    ] {
        refused(&text, "the file is not valid TOML");
    }
    let deep = format!("schema = {}1{}", "{items=".repeat(70), "}".repeat(70));
    refused(&with(&format!("[output]\n{deep}")), "nested more than 64 levels deep");
}

#[test]
fn the_number_of_reported_problems_is_limited() {
    let keys: String = (0..5000).map(|number| format!("key{number} = 1\n")).collect();
    let problem = Fixture::new(&with(&keys)).agent().unwrap_err();
    assert_eq!(problem.lines().count(), 51, "{problem}");
    assert!(problem.ends_with("and 4950 more"), "{problem}");
}

#[test]
fn keys_and_items_are_bounded() {
    let numbers = "1,".repeat(60_000);
    refused(&with(&format!("{} = [{numbers}]", "k".repeat(120_000))), "longer than 200 characters");
    refused(&with(&format!("[output]\nschema = {{ enum = [{numbers}] }}")), "more than 20000 keys");
    let keys: String = (0..21_000).map(|number| format!("k{number}=1\n")).collect();
    refused(&with(&keys), "line 20001, column 1: the file has more than 20000 keys and items");
}

#[test]
fn no_key_moves_the_cursor_or_fills_the_screen() {
    let key = format!("\"\\u001b[2J{}\" = 1", "x".repeat(150));
    let problem = Fixture::new(&with(&key)).agent().unwrap_err();
    assert!(!problem.contains('\u{1b}') && problem.len() < 1000, "{problem}");
    let pattern = format!("[output]\nschema = {{ pattern = \"(\\u001b{}\" }}", "x".repeat(10_000));
    let problem = Fixture::new(&with(&pattern)).agent().unwrap_err();
    assert!(!problem.contains('\u{1b}') && problem.len() < 3000, "{problem}");
}

#[test]
fn files_outside_the_folder_are_refused() {
    let outer = tempfile::tempdir().unwrap();
    let inner = outer.path().join("inner");
    fs::create_dir(&inner).unwrap();
    fs::write(outer.path().join("secret.txt"), "secret").unwrap();
    symlink("../secret.txt", inner.join("link.txt")).unwrap();
    symlink("..", inner.join("up")).unwrap();
    symlink("loop", inner.join("loop")).unwrap();
    let absolute = outer.path().join("secret.txt");
    let refuse = |text: String| {
        fs::write(inner.join("agent.toml"), &text).unwrap();
        let file = AgentFile::read(&inner.join("agent.toml"));
        let error = file.and_then(|file| built(&file, "m", None)).unwrap_err();
        let message = error.message();
        assert!(message.contains("line 3, column"), "{text}: {message}");
        assert!(
            message.contains("folder or below it") || message.contains("may access its own folder")
        );
        assert!(!message.contains("secret\""), "{message}");
    };
    for path in
        ["../secret.txt", "link.txt", "up/secret.txt", absolute.to_str().unwrap(), "loop", "."]
    {
        refuse(format!("\nname = \"a\"\nprompt_file = {path:?}\n"));
        refuse(with(&format!("output.schema_file = {path:?}")));
    }
    for path in ["..", "up", "../inner", "/", outer.path().to_str().unwrap(), "loop", "link.txt"] {
        refuse(with(&format!("tools.files.root = {path:?}")));
    }
}

#[test]
fn pipes_and_devices_are_refused_without_waiting() {
    let fixture = Fixture::new(&with("output.schema_file = \"pipe\""));
    let made = std::process::Command::new("mkfifo").arg(fixture.path("pipe")).status().unwrap();
    assert!(made.success());
    assert!(fixture.agent().unwrap_err().contains("it is a pipe, a device or a socket"));
    for path in ["/dev/zero", "/dev/stdin", "/"] {
        assert!(AgentFile::read(path.as_ref()).is_err(), "{path}");
    }
}

#[test]
fn output_schemas_that_go_in_circles_or_lead_out_are_refused() {
    refused(&with("[output]\nschema = { \"$ref\" = \"#\" }"), "forms a cycle");
    let to = |target: &str| with(&format!("[output]\nschema = {{ \"$ref\" = \"{target}\" }}"));
    refused(&to("https://example.com/schema.json"), "nothing is fetched");
    refused(&to("file:///etc/passwd"), "nothing is fetched");
    refused(&to("#/$defs/nowhere"), "not a usable JSON Schema");
    refused(&with("[output]\nschema = { type = \"strin\" }"), "not a usable JSON Schema");
    refused(&with("[output]\nschema = { pattern = \"(\" }"), "not a usable JSON Schema");
    let remote = "[output.schema]\n\"$schema\" = \"https://example.com/meta\"";
    refused(&with(remote), "not a usable JSON Schema");
}

#[test]
fn an_agent_cannot_write_the_files_that_it_references() {
    let files = "[tools.files]\nroot = \"data\"\nwrite = true";
    let because = "is in the folder that the agent may write to";
    let refused = |text: &str, because: &str| {
        let fixture = Fixture::new(text);
        fs::write(fixture.path("data/prompt.md"), "prompt").unwrap();
        fs::create_dir(fixture.path("data/sub")).unwrap();
        fs::write(fixture.path("data/sub/schema.json"), "{\"type\":\"object\"}").unwrap();
        symlink("data/prompt.md", fixture.path("link.md")).unwrap();
        symlink("data/sub", fixture.path("sub")).unwrap();
        let problem = fixture.agent().unwrap_err();
        assert!(problem.contains(because), "{problem}");
    };
    for prompt in ["data/prompt.md", "link.md", "./data/../data/prompt.md"] {
        refused(&format!("name = \"a\"\nprompt_file = \"{prompt}\"\n{files}"), because);
    }
    for schema in ["data/sub/schema.json", "sub/schema.json"] {
        refused(&with(&format!("output.schema_file = \"{schema}\"\n{files}")), because);
    }
    refused(&with(&files.replace("data", ".")), "`agent.toml` is in");
}

#[test]
fn an_overridden_folder_must_not_contain_the_agent_file() {
    let fixture = Fixture::new(&with("[tools.files]\nroot = \"data\"\nwrite = true"));
    let agent =
        |files| built(&AgentFile::read(&fixture.path("agent.toml")).unwrap(), "m", Some(files));
    let outer = fixture.folder.path();
    for files in [outer, outer.parent().unwrap(), std::path::Path::new("/")] {
        let error = agent(files).unwrap_err();
        assert!(error.message().contains("`agent.toml` is in"), "{error}");
    }
    let other = tempfile::tempdir().unwrap();
    assert!(agent(other.path()).is_ok());
}
