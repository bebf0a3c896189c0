//! Tests of `helix run` with invalid and malicious agent files.

use std::fs::File;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::support::server::{Reply, Server, Turn, model};
use crate::support::{CommandResult, TestDir};

fn with(more: &str) -> String {
    format!("name = \"a\"\nprompt = \"b\"\n{more}\n")
}

#[track_caller]
fn is_refused(done: &CommandResult, code: &str, because: &str) {
    let error = done.json_error();
    assert_eq!((done.code, &error["code"]), (1, &code.into()), "{error}");
    assert_eq!(error.get("problems").is_some(), code == "agent_invalid", "{error}");
    assert!(error["message"].as_str().unwrap().contains(because), "{error}");
}

#[tokio::test]
async fn json_errors_list_each_problem() {
    let dir = TestDir::new();
    dir.write("agent.toml", with("promt = 1\nlimits.max_steps = 0"));
    let done = dir.helix(&["run", "agent.toml", "Hi", "--json"]).await;
    let error = done.json_error();
    let problems: Vec<_> = error["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| problem.as_str().unwrap())
        .collect();
    assert_eq!(problems.len(), 2, "{error}");
    assert!(problems[0].ends_with("unknown key `promt`; did you mean `prompt`?"), "{error}");
    assert!(problems[1].ends_with("`limits.max_steps` must be at least 1"), "{error}");
    assert_eq!(error["message"], problems.join("\n"));
    let other = dir.helix(&["sessions", "show", "nobody", "--json"]).await;
    assert_eq!(other.json_error().get("problems"), None);
}

#[tokio::test]
async fn hostile_files_end_in_an_error_and_leave_nothing() {
    let dir = TestDir::new();
    dir.write("secret.txt", "secret");
    dir.write("sub/other.txt", "other");
    symlink("../secret.txt", dir.path("sub/link.txt")).unwrap();
    symlink("loop", dir.path("sub/loop")).unwrap();
    let nested = format!("x = {}", "[".repeat(100_000));
    let circle = with("[output]\nschema = { allOf = [{ \"$ref\" = \"#\" }] }");
    let remote = with("[output]\nschema = { \"$ref\" = \"https://example.com/s.json\" }");
    for (text, because) in [
        (String::new(), "`name` is missing"),
        ("\0".repeat(100), "the file is not valid TOML"),
        (nested, "the file is not valid TOML"),
        (with("promt = 1"), "unknown key `promt`; did you mean `prompt`?"),
        (with("limits.max_steps = \"9\""), "must be an integer, not a string"),
        (with("limits.max_steps = 0"), "must be at least 1"),
        (with("limits = 3"), "`limits` must be a table, not a number"),
        (circle, "forms a cycle"),
        (remote, "nothing is fetched"),
        (with("output.schema_file = \"../secret.txt\""), "in the agent file's folder"),
        (with("output.schema_file = \"link.txt\""), "in the agent file's folder"),
        (with("output.schema_file = \"/etc/passwd\""), "in the agent file's folder"),
        (with("output.schema_file = \"other.txt\""), "`other.txt` is not JSON"),
        (with("tools.files.root = \"..\""), "an agent file may access its own folder"),
        (with("tools.files.root = \"/\""), "an agent file may access its own folder"),
        (with("tools.files.root = \"loop\""), "cannot be opened"),
        (with("tools.http.hosts = [\"*\"]"), "is not a host"),
        (with("tools.http.hosts = [\"http://127.0.0.1/\"]"), "is not a host"),
    ] {
        dir.write("sub/agent.toml", &text);
        let done = dir.helix(&["run", "sub/agent.toml", "Hi", "--json"]).await;
        is_refused(&done, "agent_invalid", because);
    }
    File::create(dir.path("sub/agent.toml")).unwrap().set_len(100 << 20).unwrap();
    let large = dir.helix(&["run", "sub/agent.toml", "Hi", "--json"]).await;
    is_refused(&large, "input_invalid", "it is larger than 262144 bytes");
    for path in ["nowhere.toml", "sub", "/dev/zero", "sub/loop"] {
        let done = dir.helix(&["run", path, "Hi", "--json"]).await;
        is_refused(&done, "input_invalid", "the agent file cannot be read");
    }
    assert!(!dir.path("helix.db").exists());
}

#[tokio::test]
async fn text_errors_have_file_line_and_column() {
    let dir = TestDir::new();
    dir.write("agent.toml", with("[limits]\nmax_step = 3"));
    let done = dir.helix(&["run", "agent.toml", "Hi"]).await;
    assert_eq!((done.code, &*done.stdout), (1, ""));
    let message = "agent.toml, line 4, column 1: unknown key `limits.max_step`; did you mean \
                `max_steps`?";
    assert!(done.stderr.contains(message), "{}", done.stderr);
    let error = dir.helix(&["run", "agent.toml", "Hi", "--json"]).await.json_error();
    assert_eq!(
        (&error["context"]["line"], &error["context"]["column"]),
        (&json!("4"), &json!("1"))
    );
}

#[tokio::test]
async fn an_unknown_provider_is_reported() {
    let dir = TestDir::new();
    dir.write("agent.toml", with("model = \"nobody:model\""));
    let done = dir.helix(&["run", "agent.toml", "Hi", "--json"]).await;
    is_refused(&done, "model_unknown", "no provider `nobody` is configured");
}

#[tokio::test]
async fn a_missing_api_key_is_reported() {
    let dir = TestDir::new();
    dir.write("agent.toml", with(""));
    let provider = "base_url = \"https://models.example.com/v1\"\napi_key_env = \"KK\"";
    dir.write("helix.toml", format!("[providers.x]\n{provider}\nmodel = \"m\"\n"));
    let done = dir.helix(&["run", "agent.toml", "Hi", "--json"]).await;
    is_refused(&done, "config_invalid", "the key of the provider `x` is missing: set KK");
    let doctor = dir.helix(&["doctor", "--json"]).await.json();
    assert_eq!(doctor["problems"][0]["code"], "config_invalid");
    let message = &doctor["problems"][0]["message"];
    assert!(message.as_str().unwrap().ends_with("set KK"), "{message}");
}

#[tokio::test]
async fn the_schema_is_printed_for_editors() {
    let dir = TestDir::new();
    let pretty = dir.helix(&["schema"]).await;
    let programs = dir.helix(&["schema", "--json"]).await;
    assert_eq!((pretty.code, programs.stdout.lines().count()), (0, 1));
    let schema: Value = serde_json::from_str(&pretty.stdout).unwrap();
    assert_eq!(schema, programs.json());
    assert_eq!(schema["properties"]["limits"]["properties"]["max_steps"]["default"], 50);
}

/// Runs an agent with these tools and calls, and returns the tool results that the model received.
async fn results(dir: &TestDir, tools: &str, calls: Vec<(&'static str, Value)>) -> Vec<String> {
    let count = calls.len();
    let model = model(vec![Turn::Calls(calls), Turn::Text("Done.")]).await;
    dir.ask(&model);
    dir.write("agent.toml", with(tools));
    let done = dir.helix(&["run", "agent.toml", "Go.", "--json"]).await;
    assert_eq!(done.json()["status"], "completed", "{done:?}");
    let last = model.requests().last().unwrap().json();
    let messages = last["messages"].as_array().unwrap();
    let results = messages.iter().rev().take(count).rev();
    results.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn file_tools_access_only_their_folder() {
    let dir = TestDir::new();
    dir.write("data/a.txt", "the text");
    symlink("..", dir.path("data/up")).unwrap();
    let tools = "[tools.files]\nroot = \"data\"\nwrite = true";
    let read = |path: &str| ("read_file", json!({ "path": path }));
    let calls = vec![
        ("list_files", json!({})),
        read("a.txt"),
        read("../agent.toml"),
        read("up/agent.toml"),
        read("/etc/passwd"),
        ("write_file", json!({ "path": "up/agent.toml", "text": "B" })),
    ];
    let results = results(&dir, tools, calls).await;
    let expected = r#"{"entries":[{"path":"a.txt","kind":"file","bytes":8},{"path":"up","kind":"link"}],"more":false}"#;
    assert_eq!(results[0], expected);
    assert_eq!(results[1], r#"{"text":"the text","bytes":8}"#);
    for refused in &results[2..] {
        assert!(refused.contains("is not allowed: a path must be below"), "{results:?}");
    }
    // Calls of one reply run concurrently, so this write needs a separate run to keep the list stable.
    let write = ("write_file", json!({ "path": "new/b.txt", "text": "B" }));
    let results = self::results(&dir, tools, vec![write]).await;
    assert_eq!(results, [r#"{"path":"new/b.txt","bytes":1}"#]);
    assert_eq!(std::fs::read_to_string(dir.path("data/new/b.txt")).unwrap(), "B");
    assert!(std::fs::read_to_string(dir.path("agent.toml")).unwrap().starts_with("name"));
}

#[tokio::test]
async fn an_overridden_folder_is_recorded_in_the_session() {
    let (dir, other) = (TestDir::new(), TestDir::new());
    other.write("a.txt", "elsewhere");
    let read = Turn::call("read_file", json!({ "path": "a.txt" }));
    let model = model(vec![read.clone(), Turn::Text("One."), read, Turn::Text("Two.")]).await;
    dir.ask(&model);
    dir.write("agent.toml", with("[tools.files]\nroot = \".\""));
    let folder = other.path("");
    let files = ["--files", folder.to_str().unwrap(), "--json"];
    let first = dir.helix(&[&["run", "agent.toml", "Go."][..], &files].concat()).await.json();
    let session = first["session"].as_str().unwrap();
    dir.helix(&["run", "agent.toml", "Again.", "--session", session, "--json"]).await.json();
    for request in [1, 3] {
        let message =
            model.requests()[request].json()["messages"].as_array().unwrap().last().cloned();
        assert_eq!(message.unwrap()["content"], r#"{"text":"elsewhere","bytes":9}"#);
    }
}

#[tokio::test]
async fn options_that_do_not_apply_are_rejected() {
    let dir = TestDir::new();
    let model = model(vec![Turn::Text("One.")]).await;
    dir.ask(&model);
    dir.write("agent.toml", with(""));
    let run = ["run", "agent.toml", "Go.", "--json"];
    let done = dir.helix(&[&run[..], &["--files", "."]].concat()).await;
    is_refused(&done, "input_invalid", "`--files` does not apply: the agent file has no");
    let session = dir.helix(&run).await.json()["session"].as_str().unwrap().to_owned();
    let again = [&run[..], &["--session", &session, "--files", "."]].concat();
    is_refused(&dir.helix(&again).await, "input_invalid", "`--files` does not apply");
    let failing = Server::start(|_| Reply::of(400, "", "no")).await;
    dir.ask(&failing);
    dir.helix(&run).await;
    for (option, value) in [("--files", "."), ("--trace", "trace.jsonl")] {
        let done = dir.helix(&["resume", "--last", option, value, "--json"]).await;
        is_refused(&done, "input_invalid", &format!("`{option}` does not apply"));
    }
}

#[tokio::test]
async fn a_path_that_is_not_utf8_is_rejected() {
    use std::os::unix::ffi::OsStrExt as _;
    let dir = TestDir::new();
    let folder = dir.path("").join(std::ffi::OsStr::from_bytes(b"odd\xff"));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("agent.toml"), with("")).unwrap();
    symlink(&folder, dir.path("link")).unwrap();
    let done = dir.helix(&["run", "link/agent.toml", "Hi", "--json"]).await;
    is_refused(&done, "input_invalid", "is not valid UTF-8");
}

#[tokio::test]
async fn pages_come_from_listed_hosts_only() {
    let web = Server::start(|request| match request.path() {
        "/private" => Reply::of(302, "location: http://169.254.169.254/latest/\r\n", ""),
        "/away" => Reply::of(302, "location: https://example.com/\r\n", ""),
        _ => Reply::text("It rains."),
    })
    .await;
    let port = web.port;
    let get = |url: String| ("http_get", json!({ "url": url }));
    let calls = vec![
        get(format!("http://127.0.0.1:{port}/weather")),
        get(format!("http://127.0.0.1:{port}/private")),
        get(format!("http://127.0.0.1:{port}/away")),
        get(format!("http://localhost:{port}/weather")),
        get(format!("http://[::ffff:127.0.0.1]:{port}/weather")),
        get("file:///etc/passwd".to_owned()),
    ];
    let tools = format!("[tools.http]\nhosts = [\"127.0.0.1:{port}\", \"localhost.test\"]");
    let results = results(&TestDir::new(), &tools, calls).await;
    let page: Value = serde_json::from_str(&results[0]).unwrap();
    assert_eq!((&page["status"], &page["text"]), (&200.into(), &"It rains.".into()));
    for (result, host) in results[1..].iter().zip([
        "169.254.169.254",
        "example.com",
        "localhost",
        "[::ffff:7f00:1]",
        "",
    ]) {
        assert!(result.contains("not allowed") && result.contains(host), "{host}: {result}");
    }
    assert_eq!(web.requests().len(), 3);
}
