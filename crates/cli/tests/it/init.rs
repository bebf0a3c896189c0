//! `helix init`.

use std::path::{Path, PathBuf};

use serde_json::json;
use tokio::process::Command;

use crate::support::TestDir;
use crate::support::server::{Turn, model};

/// The program of a new project. It is compiled here, so that most mistakes are found without the deep tier, which builds
/// a project.
#[expect(dead_code, clippy::print_stdout, clippy::print_stderr, reason = "a program of its own")]
#[path = "../../templates/rust/main.rs"]
mod program;

/// The names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"))
}

#[tokio::test]
async fn an_agent_file_is_written_by_default() {
    for (args, file, name) in [
        (&["init", "--name", "mine"][..], "agent.toml", "mine"),
        (&["init", "--agent", "my reader"], "my reader/agent.toml", "my-reader"),
        (&["init", "reader.toml"], "reader.toml", "reader"),
        (&["init", "agents/Poet.toml", "--name", "Dichter"], "agents/Poet.toml", "Dichter"),
    ] {
        let dir = TestDir::new();
        let done = dir.helix(args).await;
        assert_eq!((done.code, &*done.stderr), (0, ""), "{args:?}");
        assert!(done.stdout.contains(&format!("wrote    {file}\n")), "{}", done.stdout);
        assert!(done.stdout.contains("try it   helix run "), "{}", done.stdout);
        let text = read(&dir.path(file));
        assert!(text.contains(&format!("\nname = \"{name}\"\n")), "{args:?}: {text}");
        assert!(!text.contains("{{"), "{text}");
        // The first line references the schema for editors.
        assert_eq!(text.lines().next(), Some("#:schema ./agent.schema.json"));
        let schema = dir.path(file).with_file_name("agent.schema.json");
        assert_eq!(read(&schema), dir.helix(&["schema"]).await.stdout);
    }
}

#[tokio::test]
async fn nothing_is_replaced_without_force() {
    let dir = TestDir::new();
    std::fs::write(dir.path("agent.toml"), "mine").unwrap();
    let done = dir.helix(&["init", "--json"]).await;
    let error = done.json_error();
    assert_eq!((done.code, &error["code"]), (1, &"input_invalid".into()));
    assert!(error["message"].as_str().unwrap().contains("--force"), "{error}");
    assert_eq!(read(&dir.path("agent.toml")), "mine");

    let done = dir.helix(&["init", "--force", "--name", "mine", "--json"]).await;
    let expected = json!({ "kind": "agent", "written": ["agent.toml", "agent.schema.json"], "next": "helix run agent.toml \"…\"" });
    assert_eq!(done.json(), expected);
    assert!(read(&dir.path("agent.toml")).contains("name = \"mine\""));
    // Identical files are not written again.
    assert_eq!(dir.helix(&["init", "--name", "mine", "--json"]).await.json()["written"], json!([]));
}

#[tokio::test]
async fn a_project_is_written_completely_or_not_at_all() {
    let dir = TestDir::new();
    let json = dir.helix(&["init", "--rust", "weather", "--json"]).await.json();
    assert_eq!((&json["kind"], json["written"].as_array().unwrap().len()), (&"rust".into(), 5));
    let files = [".gitignore", "Cargo.lock", "Cargo.toml", "README.md", "src"];
    assert_eq!(names(&dir.path("weather")), files);
    assert!(read(&dir.path("weather/Cargo.toml")).contains("name = \"weather\""));

    std::fs::create_dir(dir.path("taken")).unwrap();
    std::fs::write(dir.path("taken/README.md"), "mine").unwrap();
    let done = dir.helix(&["init", "--rust", "taken"]).await;
    assert_eq!((done.code, &*done.stdout), (1, ""));
    assert!(done.stderr.contains("README.md") && done.stderr.contains("--force"), "{done:?}");
    assert_eq!(names(&dir.path("taken")), ["README.md"]);
    let done = dir.helix(&["init", "--rust", "taken", "--force"]).await;
    assert_eq!(done.code, 0, "{done:?}");
    assert_ne!(read(&dir.path("taken/README.md")), "mine");
}

#[tokio::test]
async fn an_invalid_name_is_rejected_with_a_hint() {
    let dir = TestDir::new();
    for args in [&["init", "--rust", "1st"][..], &["init", "--rust", "x", "--name", "serde"]] {
        let done = dir.helix(&[args, &["--json"]].concat()).await;
        let message = done.json_error()["message"].as_str().unwrap().to_owned();
        assert!(done.code == 1 && message.contains("--name"), "{message}");
    }
    let done = dir.helix(&["init", "--name", "an agent", "--json"]).await;
    assert!(done.json_error()["message"].as_str().unwrap().contains("an agent"));
    assert_eq!(names(&dir.path(".")), [] as [&str; 0]);
    let done = dir.helix(&["init", "--rust", "1st", "--name", "first"]).await;
    assert_eq!(done.code, 0, "{done:?}");
}

#[tokio::test]
async fn a_project_uses_the_given_checkout() {
    let dir = TestDir::new();
    let done = dir.helix(&["init", "--rust", "x", "--helix-agents", ".", "--json"]).await;
    assert_eq!((done.code, &done.json_error()["code"]), (1, &"input_invalid".into()));
    assert!(!dir.path("x").exists());

    // A checkout whose path has to be quoted in TOML.
    let library = dir.path("it's \"a\" checkout/crates/helix-agents");
    std::fs::create_dir_all(&library).unwrap();
    std::fs::write(library.join("Cargo.toml"), "[package]\nname = \"helix-agents\"\n").unwrap();
    for checkout in ["it's \"a\" checkout", "it's \"a\" checkout/crates/helix-agents"] {
        let done = dir.helix(&["init", "--rust", "x", "--helix-agents", checkout, "--force"]).await;
        assert_eq!(done.code, 0, "{done:?}");
        let manifest: toml::Table = read(&dir.path("x/Cargo.toml")).parse().unwrap();
        let path = manifest["dependencies"]["helix-agents"]["path"].as_str().unwrap();
        assert_eq!(Path::new(path), library.canonicalize().unwrap());
    }
}

/// A fixed folder, so that cargo can reuse previous builds.
fn project() -> PathBuf {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let checkout = checkout.file_name().unwrap_or_default().to_string_lossy();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("init-{checkout}"));
    if folder.exists() {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    folder.join("weather")
}

/// Builds a project with the workspace's dependencies, without network access.
async fn build(project: &Path) {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let mut command = Command::new(cargo);
    command.current_dir(project).args(["build", "--offline"]);
    // The settings with which the workspace was built, so that its packages are not rebuilt. Cargo prefers the
    // environment variable to the manifest, and `--config` to both.
    if std::env::var_os("CARGO_PROFILE_DEV_DEBUG").is_none() {
        command.args(["--config", "profile.dev.debug = 'line-tables-only'"]);
    }
    command.args(["--config", "profile.dev.package.'*'.debug = false"]);
    command.env("CARGO_BUILD_BUILD_DIR", built).env("CARGO_TARGET_DIR", project.join("target"));
    let output = command.output().await.unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert!(!stderr.contains("warning"), "{stderr}");
}

#[tokio::test]
async fn the_project_compiles_and_its_agent_runs() {
    let dir = TestDir::new();
    let project = project();
    let done = dir.helix(&["init", "--rust", project.to_str().unwrap()]).await;
    assert_eq!(done.code, 0, "{done:?}");
    let formatted = Command::new("rustfmt")
        // The settings of a project outside of this repository.
        .args(["--check", "--edition", "2024", "--config", "use_small_heuristics=Default"])
        .arg(project.join("src/main.rs"))
        .output();
    if let Ok(output) = formatted.await {
        assert!(output.status.success(), "{output:?}");
    }
    build(&project).await;

    let advice = json!({ "umbrella": true, "reason": "it rains" });
    let weather = Turn::call("weather", json!({ "city": "Bergen" }));
    let server = model(vec![weather, Turn::finish(advice)]).await;
    let program = |port: u16| {
        let mut program = Command::new(project.join("target/debug/weather"));
        for variable in helix_agents::providers::env::ALL {
            program.env_remove(variable.name);
        }
        program.current_dir(dir.path(".")).kill_on_drop(true);
        program.env("OPENAI_BASE_URL", format!("http://127.0.0.1:{port}/v1"));
        program.env("HELIX_MODEL", "openai:small");
        program
    };
    for turn in 1..=2 {
        let output = program(server.port).output().await.unwrap();
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "umbrella: true, because it rains\n",
            "{output:?}"
        );
        let asked = server.requests().pop().unwrap().json();
        assert_eq!(asked["messages"][3]["content"], "\"heavy rain in Bergen until noon\"");
        let list = ["sessions", "list", "--db", "weather.db", "--json"];
        let list = dir.helix(&list).await.json();
        assert_eq!(list.as_array().unwrap().len(), turn);
        assert_eq!(
            (&list[0]["status"], &list[0]["head"]["created"]["agent"]),
            (&"completed".into(), &"weather".into())
        );
    }

    // After a kill, a new process reports that it waits and continues the session.
    let silent = model(vec![Turn::Silence]).await;
    let mut killed = program(silent.port).spawn().unwrap();
    silent.arrived().await;
    killed.kill().await.unwrap();
    let advice = json!({ "umbrella": false, "reason": "it is dry" });
    let server = model(vec![Turn::finish(advice)]).await;
    let output = program(server.port).output().await.unwrap();
    let expected = String::from_utf8_lossy(&output.stderr);
    assert!(
        expected.contains("may still be running in another process: waiting for 3 s"),
        "{output:?}"
    );
    let lines = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<_> = lines.lines().collect();
    assert!(lines[0].starts_with("resuming session"), "{output:?}");
    assert_eq!(lines[1..], ["umbrella: false, because it is dry"; 2], "{output:?}");
}

#[tokio::test]
async fn the_agent_of_the_file_runs() {
    let dir = TestDir::new();
    let model = model(vec![
        Turn::call("calculate", json!({ "expression": "6 * 7" })),
        Turn::call("current_time", json!({})),
        Turn::Text("It is 42."),
    ])
    .await;
    dir.ask(&model);
    assert_eq!(dir.helix(&["init", "--name", "counter"]).await.code, 0);
    let run = ["run", "agent.toml", "What is six times seven?", "--json"];
    let result = dir.helix(&run).await.json();
    assert_eq!((&result["status"], &result["output"]), (&"completed".into(), &"It is 42.".into()));
    let first = model.requests()[0].json();
    let prompt = first["messages"][0]["content"].as_str().unwrap();
    assert!(prompt.starts_with("You are a careful assistant."), "{prompt}");
    let tools = first["tools"].as_array().unwrap().iter();
    let tools: Vec<_> = tools.map(|tool| &tool["function"]["name"]).collect();
    assert_eq!(tools, ["calculate", "current_time"]);
}
