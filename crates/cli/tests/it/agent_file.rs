//! Agent files as strangers write them, and what `helix run` says to them.

use std::fs::File;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::support::server::{Reply, Server, Turn, model};
use crate::support::{Done, Place};

fn with(more: &str) -> String {
    format!("name = \"a\"\nprompt = \"b\"\n{more}\n")
}

#[track_caller]
fn is_refused(done: &Done, code: &str, because: &str) {
    let error = done.json_error();
    assert_eq!((done.code, &error["code"]), (1, &code.into()), "{error}");
    assert_eq!(error.get("problems").is_some(), code == "agent_invalid", "{error}");
    assert!(error["message"].as_str().unwrap().contains(because), "{error}");
}

#[tokio::test]
async fn programs_are_told_each_problem_by_itself() {
    let place = Place::new();
    place.write("agent.toml", with("promt = 1\nlimits.max_steps = 0"));
    let done = place.helix(&["run", "agent.toml", "Hi", "--json"]).await;
    let error = done.json_error();
    let problems: Vec<_> =
        error["problems"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    assert_eq!(problems.len(), 2, "{error}");
    assert!(problems[0].ends_with("unknown key `promt`; did you mean `prompt`?"), "{error}");
    assert!(problems[1].ends_with("`limits.max_steps` must be at least 1"), "{error}");
    assert_eq!(error["message"], problems.join("\n"));
    let other = place.helix(&["sessions", "show", "nobody", "--json"]).await;
    assert_eq!(other.json_error().get("problems"), None);
}

#[tokio::test]
async fn hostile_files_end_in_an_error_and_leave_nothing() {
    let place = Place::new();
    place.write("secret.txt", "secret");
    place.write("sub/other.txt", "other");
    symlink("../secret.txt", place.path("sub/link.txt")).unwrap();
    symlink("loop", place.path("sub/loop")).unwrap();
    let nested = format!("x = {}", "[".repeat(100_000));
    let circle = with("[output]\nschema = { allOf = [{ \"$ref\" = \"#\" }] }");
    let remote = with("[output]\nschema = { \"$ref\" = \"https://example.com/s.json\" }");
    for (text, because) in [
        (String::new(), "`name` is missing"),
        ("\0".repeat(100), "this is not TOML"),
        (nested, "this is not TOML"),
        (with("promt = 1"), "unknown key `promt`; did you mean `prompt`?"),
        (with("limits.max_steps = \"9\""), "must be a whole number, not a text"),
        (with("limits.max_steps = 0"), "must be at least 1"),
        (with("limits = 3"), "`limits` must be a table, not a number"),
        (circle, "forms a cycle"),
        (remote, "nothing is fetched"),
        (with("output.schema_file = \"../secret.txt\""), "in the agent file's folder"),
        (with("output.schema_file = \"link.txt\""), "in the agent file's folder"),
        (with("output.schema_file = \"/etc/passwd\""), "in the agent file's folder"),
        (with("output.schema_file = \"other.txt\""), "`other.txt` is not JSON"),
        (with("tools.files.root = \"..\""), "an agent file sees its own folder"),
        (with("tools.files.root = \"/\""), "an agent file sees its own folder"),
        (with("tools.files.root = \"loop\""), "cannot be opened"),
        (with("tools.http.hosts = [\"*\"]"), "is no host"),
        (with("tools.http.hosts = [\"http://127.0.0.1/\"]"), "is no host"),
    ] {
        place.write("sub/agent.toml", &text);
        let done = place.helix(&["run", "sub/agent.toml", "Hi", "--json"]).await;
        is_refused(&done, "agent_invalid", because);
    }
    File::create(place.path("sub/agent.toml")).unwrap().set_len(100 << 20).unwrap();
    let large = place.helix(&["run", "sub/agent.toml", "Hi", "--json"]).await;
    is_refused(&large, "input_invalid", "it is larger than 262144 bytes");
    for path in ["nowhere.toml", "sub", "/dev/zero", "sub/loop"] {
        let done = place.helix(&["run", path, "Hi", "--json"]).await;
        is_refused(&done, "input_invalid", "the agent file cannot be read");
    }
    assert!(!place.path("helix.db").exists());
}

#[tokio::test]
async fn people_are_told_file_line_and_column() {
    let place = Place::new();
    place.write("agent.toml", with("[limits]\nmax_step = 3"));
    let done = place.helix(&["run", "agent.toml", "Hi"]).await;
    assert_eq!((done.code, &*done.stdout), (1, ""));
    let told = "agent.toml, line 4, column 1: unknown key `limits.max_step`; did you mean \
                `max_steps`?";
    assert!(done.stderr.contains(told), "{}", done.stderr);
    let error = place.helix(&["run", "agent.toml", "Hi", "--json"]).await.json_error();
    assert_eq!(
        (&error["context"]["line"], &error["context"]["column"]),
        (&json!("4"), &json!("1"))
    );
}

#[tokio::test]
async fn a_file_without_a_model_says_where_to_name_one() {
    let place = Place::new();
    place.write("agent.toml", with("model = \"nobody:model\""));
    let done = place.helix(&["run", "agent.toml", "Hi", "--json"]).await;
    is_refused(&done, "model_unknown", "no provider `nobody` is configured");
}

#[tokio::test]
async fn a_key_that_is_not_set_is_what_is_missing() {
    let place = Place::new();
    place.write("agent.toml", with(""));
    let provider = "base_url = \"https://models.example.com/v1\"\napi_key_env = \"KK\"";
    place.write("helix.toml", format!("[providers.x]\n{provider}\nmodel = \"m\"\n"));
    let done = place.helix(&["run", "agent.toml", "Hi", "--json"]).await;
    is_refused(&done, "config_invalid", "the key of the provider `x` is missing: set KK");
    let doctor = place.helix(&["doctor", "--json"]).await.json();
    assert_eq!(doctor["problems"][0]["code"], "config_invalid");
    let message = &doctor["problems"][0]["message"];
    assert!(message.as_str().unwrap().ends_with("set KK"), "{message}");
}

#[tokio::test]
async fn the_schema_is_printed_for_editors() {
    let place = Place::new();
    let people = place.helix(&["schema"]).await;
    let programs = place.helix(&["schema", "--json"]).await;
    assert_eq!((people.code, programs.stdout.lines().count()), (0, 1));
    let schema: Value = serde_json::from_str(&people.stdout).unwrap();
    assert_eq!(schema, programs.json());
    assert_eq!(schema["properties"]["limits"]["properties"]["max_steps"]["default"], 50);
}

/// Runs an agent with these tools whose model makes these calls, and gives what it was told.
async fn results(place: &Place, tools: &str, calls: Vec<(&'static str, Value)>) -> Vec<String> {
    let count = calls.len();
    let model = model(vec![Turn::Calls(calls), Turn::Text("Done.")]).await;
    place.ask(&model);
    place.write("agent.toml", with(tools));
    let done = place.helix(&["run", "agent.toml", "Go.", "--json"]).await;
    assert_eq!(done.json()["status"], "completed", "{done:?}");
    let last = model.requests().last().unwrap().json();
    let messages = last["messages"].as_array().unwrap();
    let results = messages.iter().rev().take(count).rev();
    results.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn file_tools_see_their_folder_only() {
    let place = Place::new();
    place.write("data/a.txt", "the text");
    symlink("..", place.path("data/up")).unwrap();
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
    let results = results(&place, tools, calls).await;
    let expected = r#"{"entries":[{"path":"a.txt","kind":"file","bytes":8},{"path":"up","kind":"link"}],"more":false}"#;
    assert_eq!(results[0], expected);
    assert_eq!(results[1], r#"{"text":"the text","bytes":8}"#);
    for refused in &results[2..] {
        assert!(refused.contains("is not allowed: only paths below"), "{results:?}");
    }
    // Calls of one reply run side by side: what the listing would see has a run of its own.
    let write = ("write_file", json!({ "path": "new/b.txt", "text": "B" }));
    let results = self::results(&place, tools, vec![write]).await;
    assert_eq!(results, [r#"{"path":"new/b.txt","bytes":1}"#]);
    assert_eq!(std::fs::read_to_string(place.path("data/new/b.txt")).unwrap(), "B");
    assert!(std::fs::read_to_string(place.path("agent.toml")).unwrap().starts_with("name"));
}

#[tokio::test]
async fn a_person_may_name_another_folder_which_the_session_keeps() {
    let (place, other) = (Place::new(), Place::new());
    other.write("a.txt", "elsewhere");
    let read = Turn::call("read_file", json!({ "path": "a.txt" }));
    let model = model(vec![read.clone(), Turn::Text("One."), read, Turn::Text("Two.")]).await;
    place.ask(&model);
    place.write("agent.toml", with("[tools.files]\nroot = \".\""));
    let folder = other.path("");
    let files = ["--files", folder.to_str().unwrap(), "--json"];
    let first = place.helix(&[&["run", "agent.toml", "Go."][..], &files].concat()).await.json();
    let session = first["session"].as_str().unwrap();
    place.helix(&["run", "agent.toml", "Again.", "--session", session, "--json"]).await.json();
    for request in [1, 3] {
        let told = model.requests()[request].json()["messages"].as_array().unwrap().last().cloned();
        assert_eq!(told.unwrap()["content"], r#"{"text":"elsewhere","bytes":9}"#);
    }
}

#[tokio::test]
async fn what_would_be_said_in_vain_is_refused() {
    let place = Place::new();
    let model = model(vec![Turn::Text("One.")]).await;
    place.ask(&model);
    place.write("agent.toml", with(""));
    let run = ["run", "agent.toml", "Go.", "--json"];
    let done = place.helix(&[&run[..], &["--files", "."]].concat()).await;
    is_refused(&done, "input_invalid", "`--files` has no use here: the agent file has no");
    let session = place.helix(&run).await.json()["session"].as_str().unwrap().to_owned();
    let again = [&run[..], &["--session", &session, "--files", "."]].concat();
    is_refused(&place.helix(&again).await, "input_invalid", "`--files` has no use here");
    let failing = Server::start(|_| Reply::of(400, "", "no")).await;
    place.ask(&failing);
    place.helix(&run).await;
    for (option, value) in [("--files", "."), ("--trace", "trace.jsonl")] {
        let done = place.helix(&["resume", "--last", option, value, "--json"]).await;
        is_refused(&done, "input_invalid", &format!("`{option}` has no use here"));
    }
}

#[tokio::test]
async fn a_path_that_a_session_could_not_keep_is_refused() {
    use std::os::unix::ffi::OsStrExt as _;
    let place = Place::new();
    let folder = place.path("").join(std::ffi::OsStr::from_bytes(b"odd\xff"));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("agent.toml"), with("")).unwrap();
    symlink(&folder, place.path("link")).unwrap();
    let done = place.helix(&["run", "link/agent.toml", "Hi", "--json"]).await;
    is_refused(&done, "input_invalid", "is not in UTF-8");
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
    let results = results(&Place::new(), &tools, calls).await;
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
