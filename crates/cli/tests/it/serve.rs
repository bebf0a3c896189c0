//! Tests of `helix serve`.

use std::time::Duration;

use helix_agents::RuntimeBuilder as _;
use helix_agents::agent::Agent;
use helix_agents::client::RemoteAgent;
use helix_agents::executor::AgentExecutorExt as _;
use helix_agents::runtime_local::LocalRuntime;
use helix_agents::store_memory::MemoryStore;
use helix_agents_test::{Reply, ScriptedLlm, within};
use serde_json::{Value, json};

use crate::support::{ModelServer, Scripted, Served, TestDir};

const CLERK: &str = "name = \"clerk\"\nprompt = \"You are a clerk.\"\n";

/// Returns the text of a stream, without that of discarded attempts.
fn text(chunks: &[Value]) -> String {
    let mut text = String::new();
    for chunk in chunks {
        match chunk["type"].as_str().unwrap() {
            "text_delta" => text.push_str(chunk["delta"].as_str().unwrap()),
            "step_discarded" => text.clear(),
            _ => {}
        }
    }
    text
}

#[tokio::test]
async fn a_run_survives_the_kill_of_its_server_and_shows_its_text_once() {
    let replies = [Scripted::Waits("One, ", "lost."), Scripted::Words("One, two, three.")];
    let (dir, model) = (TestDir::new(), ModelServer::start(replies).await);
    dir.write("agent.toml", CLERK);
    let server = Served::start(&dir, &model, &["agent.toml"]).await;
    let url = server.url.clone();
    let run = tokio::spawn(dir.helix(&["--server", &url, "run", "clerk", "Count!"]));
    model.requested().await;
    let mut tail = dir.start(&["--server", &url, "tail", "--last", "--json"]);
    let mut chunks = vec![serde_json::from_str::<Value>(&tail.shows("\"seq\"").await).unwrap()];
    while text(&chunks) != "One, " {
        chunks.push(serde_json::from_str(&tail.shows("\"seq\"").await).unwrap());
    }
    server.kill().await;
    let server = Served::restart(&dir, &model, &url, &["agent.toml"]).await;

    let done = run.await.unwrap();
    assert_eq!((done.code, &*done.stdout), (0, "One, two, three.\n"), "{done:?}");
    chunks.extend(tail.end().await.json_lines());
    assert_eq!(text(&chunks), "One, two, three.");
    let seqs: Vec<_> = chunks.iter().map(|chunk| chunk["seq"].as_u64().unwrap()).collect();
    assert!(seqs.is_sorted_by(|before, after| before < after), "{seqs:?}");
    assert_eq!(chunks.last().unwrap()["type"], "run_ended");
    assert_eq!(model.requests().len(), 2);

    let stopped = server.stop().await;
    assert_eq!(stopped.code, 0, "{stopped:?}");
    let shown = dir.helix(&["sessions", "show", "--last", "--json"]).await.json();
    let runs: Vec<_> = shown["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["status"].as_str().unwrap())
        .collect();
    assert_eq!((&*runs, &shown["turns"]), (&["superseded", "completed"][..], &1.into()));
}

#[tokio::test]
async fn a_remote_agent_survives_the_kill_of_its_server() {
    let replies = [Scripted::Waits("One, ", "lost."), Scripted::Words("One, two, three.")];
    let (dir, model) = (TestDir::new(), ModelServer::start(replies).await);
    dir.write("agent.toml", CLERK);
    let server = Served::start(&dir, &model, &["agent.toml"]).await;
    let url = server.url.clone();
    let clerk = RemoteAgent::http(&url, "clerk").description("Counts.").build().unwrap();
    let boss = Agent::builder("boss")
        .system_prompt("Delegate.")
        .model("scripted")
        .sub_agent(&clerk)
        .build()
        .unwrap();
    let call = Reply::tool_call("subagent__clerk", json!({ "message": "Count!" }));
    let script = ScriptedLlm::new([call, Reply::text("Done.")]);
    let runtime =
        LocalRuntime::builder().store(MemoryStore::new()).llm(script.clone()).build().unwrap();
    let run = tokio::spawn(async move { runtime.run(&boss, "Go!").await });
    model.requested().await;
    server.kill().await;
    let server = Served::restart(&dir, &model, &url, &["agent.toml"]).await;
    assert_eq!(within(run).await.unwrap().unwrap(), "Done.");
    let read = format!("{:?}", script.seen().last().unwrap().messages.last().unwrap());
    assert!(read.contains("One, two, three.") && !read.contains("lost"), "{read}");
    assert_eq!(model.requests().len(), 2);

    assert_eq!(server.stop().await.code, 0);
    let listed = dir.helix(&["sessions", "list", "--json"]).await.json();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    let shown = dir.helix(&["sessions", "show", "--last", "--json"]).await.json();
    assert_eq!((&shown["status"], &shown["turns"]), (&"completed".into(), &1.into()));
}

#[tokio::test]
async fn a_stopped_server_hands_its_run_over() {
    let replies = [Scripted::Waits("One, ", "lost."), Scripted::Words("Done.")];
    let (dir, model) = (TestDir::new(), ModelServer::start(replies).await);
    dir.write("agent.toml", CLERK);
    let server = Served::start(&dir, &model, &["agent.toml", "--grace", "0"]).await;
    let url = server.url.clone();
    let run = tokio::spawn(dir.helix(&["--server", &url, "run", "clerk", "Count!", "--json"]));
    model.requested().await;
    let stopped = server.stop().await;
    assert_eq!(stopped.code, 0, "{stopped:?}");
    assert!(stopped.stderr.contains("shutting down"), "{stopped:?}");
    let server = Served::restart(&dir, &model, &url, &["agent.toml"]).await;
    assert_eq!(run.await.unwrap().json()["output"], "Done.");
    server.kill().await;
}

#[tokio::test]
async fn another_machine_needs_a_token_and_no_database_is_created_without_one() {
    let dir = TestDir::new();
    dir.write("agent.toml", CLERK);
    let done = dir.helix(&["serve", "agent.toml", "--listen", "0.0.0.0:0", "--json"]).await;
    let error = done.json_error();
    assert_eq!((done.code, &error["code"]), (1, &"config_invalid".into()));
    assert!(error["message"].as_str().unwrap().contains("helix token add"), "{error}");
    assert!(!dir.path("helix.db").exists());
    assert_eq!(dir.helix(&["serve"]).await.code, 2);
    let missing = dir.helix(&["serve", "agent.toml", "--tokens", "none.toml", "--json"]).await;
    assert_eq!((missing.code, &missing.json_error()["code"]), (1, &"config_invalid".into()));
}

#[tokio::test]
async fn clients_need_a_token_of_the_file() {
    let model = ModelServer::start([Scripted::Words("Hello.")]).await;
    let dir = TestDir::new();
    dir.write("agent.toml", CLERK);
    dir.write("helix.toml", "[serve]\ntokens = \"tokens.toml\"\n");
    let token = dir.helix(&["token", "add", "ann"]).await.stdout;
    let server = Served::start(&dir, &model, &["agent.toml"]).await;
    let run = ["--server", &server.url, "run", "clerk", "Hi!"];
    let refused = dir.helix(&[&run[..], &["--json"]].concat()).await;
    assert_eq!((refused.code, &refused.json_error()["code"]), (1, &"unauthenticated".into()));
    dir.write("token", &token);
    let done = dir.helix(&[&run[..], &["--token-file", "token"]].concat()).await;
    assert_eq!((done.code, &*done.stdout), (0, "Hello.\n"), "{done:?}");
    let mut list = dir.command(&["--server", &server.url, "sessions", "list", "--json"]);
    let output = list.env("HELIX_TOKEN", token.trim()).output().await.unwrap();
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(listed[0]["status"], "completed");
    let with_token = |args: &[&str]| {
        let args = [&["--server", &server.url, "--token-file", "token", "--json"], args].concat();
        dir.command(&args)
    };
    for args in [
        &["sessions", "checkpoints", "--last"][..],
        &["sessions", "fork", "--last", "--step", "1"],
        &["resume", "--last"],
        &["tail", "--last"],
    ] {
        let output = with_token(args).output().await.unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
    }
    let log = with_token(&["sessions", "log", "--last"]).output().await.unwrap();
    let error: Value = serde_json::from_slice(&log.stderr).unwrap();
    assert_eq!((log.status.code(), &error["error"]["code"]), (Some(1), &"forbidden".into()));
    assert!(!String::from_utf8(done.stderr.into_bytes()).unwrap().contains(token.trim()));
    server.kill().await;
}

#[cfg(all(feature = "runtime-durable", feature = "runtime-temporal"))]
#[tokio::test]
async fn an_engine_executes_the_runs() {
    use helix_agents_testkit::servers;

    for (runtime, engine) in [("durable", servers::postgres()), ("temporal", servers::temporal())] {
        let model = ModelServer::start([Scripted::Words("Hello.")]).await;
        let dir = TestDir::new();
        dir.write("agent.toml", CLERK);
        let options = ["agent.toml", "--runtime", runtime, "--engine", &engine, "--grace", "1"];
        let server = Served::start(&dir, &model, &options).await;
        let done = dir.helix(&["--server", &server.url, "run", "clerk", "Hi!"]).await;
        assert_eq!((done.code, &*done.stdout), (0, "Hello.\n"), "{runtime}: {done:?}");
        let log = dir.helix(&["sessions", "log", "--last", "--json"]).await;
        assert!(log.stdout.contains(&format!("\"runtime\":\"{runtime}\"")), "{log:?}");
        let stopped = server.stop().await;
        assert_eq!(stopped.code, 0, "{runtime}: {stopped:?}");
    }
}

#[tokio::test]
async fn a_runtime_and_its_engine_have_to_match() {
    let dir = TestDir::new();
    dir.write("agent.toml", CLERK);
    let local =
        ["serve", "agent.toml", "--engine", "http://127.0.0.1:1", "--listen", "127.0.0.1:0"];
    let durable = ["serve", "agent.toml", "--runtime", "durable", "--listen", "127.0.0.1:0"];
    for (options, wanted) in [(local, "--runtime"), (durable, "--engine")] {
        let done = dir.helix(&[&options[..], &["--json"]].concat()).await;
        let error = done.json_error();
        assert_eq!((done.code, &error["code"]), (1, &"config_invalid".into()), "{error}");
        assert!(error["message"].as_str().unwrap().contains(wanted), "{error}");
    }
}

#[tokio::test]
async fn each_agent_file_has_its_own_agent() {
    let model =
        ModelServer::start([Scripted::Words("I am one."), Scripted::Words("I am two.")]).await;
    let dir = TestDir::new();
    dir.write("one.toml", "name = \"one\"\nprompt = \"You are one.\"\n");
    dir.write("two.toml", "name = \"two\"\nprompt = \"You are two.\"\n");
    let server = Served::start(&dir, &model, &["one.toml", "two.toml"]).await;
    for (agent, answer) in [("one", "I am one.\n"), ("two", "I am two.\n")] {
        let done = dir.helix(&["--server", &server.url, "run", agent, "Who?"]).await;
        assert_eq!((done.code, &*done.stdout), (0, answer), "{done:?}");
    }
    let prompts: Vec<_> =
        model.requests().iter().map(|body| body["messages"][0]["content"].clone()).collect();
    assert_eq!(prompts, ["You are one.", "You are two."]);
    let missing = dir.helix(&["--server", &server.url, "run", "three", "Who?", "--json"]).await;
    assert_eq!((missing.code, &missing.json_error()["code"]), (1, &"agent_not_found".into()));
    let twice = dir.helix(&["serve", "one.toml", "one.toml", "--json"]);
    let twice = tokio::time::timeout(Duration::from_secs(20), twice).await.unwrap();
    assert_eq!(twice.code, 1, "{twice:?}");
    server.kill().await;
}
