//! `helix doctor`.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::Semaphore;

use crate::support::server::{Reply, Server, model};
use crate::support::{CommandResult, TestDir};

const KEY: &str = "hunter2";

fn url(server: &Server) -> String {
    format!("http://127.0.0.1:{}/v1", server.port)
}

/// Runs `helix doctor` with these environment variables.
async fn doctor(dir: &TestDir, args: &[&str], variables: &[(&str, &str)]) -> CommandResult {
    let mut command = dir.command(&[&["doctor"], args].concat());
    command.envs(variables.iter().copied());
    CommandResult::of(command.output().await.unwrap())
}

/// The JSON report with a working model server.
async fn report(dir: &TestDir, args: &[&str]) -> (Value, i32) {
    let server = model(Vec::new()).await;
    let url = url(&server);
    let variables = [("OPENAI_BASE_URL", &*url), ("HELIX_MODEL", "openai:small")];
    let done = doctor(dir, &[args, &["--json"]].concat(), &variables).await;
    (done.json(), done.code)
}

/// Returns the provider of this name.
#[track_caller]
fn provider<'a>(report: &'a Value, name: &str) -> &'a Value {
    let providers = report["models"]["providers"].as_array().unwrap();
    let found = providers.iter().find(|provider| provider["name"] == name);
    found.unwrap_or_else(|| panic!("{name}: {providers:?}"))
}

#[track_caller]
fn codes(findings: &Value) -> Vec<&str> {
    let findings = findings.as_array().unwrap();
    for finding in findings {
        for member in ["message", "remedy"] {
            assert!(!finding[member].as_str().unwrap().is_empty(), "{finding}");
        }
    }
    findings.iter().map(|finding| finding["code"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_complete_configuration_is_reported_and_nothing_is_written() {
    let dir = TestDir::new();
    let server = model(Vec::new()).await;
    let url = url(&server);
    let variables =
        [("OPENAI_BASE_URL", &*url), ("OPENAI_API_KEY", KEY), ("HELIX_MODEL", "openai:small")];
    let text = doctor(&dir, &[], &variables).await;
    assert_eq!((text.code, &*text.stderr), (0, ""), "{}", text.stdout);
    for expected in [
        "HELIX_MODEL      openai:small",
        "OPENAI_API_KEY   set",
        "openai:small: set by HELIX_MODEL",
        &*url,
        "with the key in OPENAI_API_KEY",
        "source: OPENAI_API_KEY; API: chat_completions",
        "responds; models: small",
        "strict_output",
        "does not exist yet",
        "yes acknowledged appends survive a killed process",
        "synchronous=FULL",
        "no  acknowledged appends survive a power failure",
        "PerStep",
        "temporal, dbos",
        "The configuration is complete: agents can run.",
    ] {
        assert!(text.stdout.contains(expected), "`{expected}` is not in:\n{}", text.stdout);
    }
    assert!(!text.stdout.contains('\u{1b}') && !text.stdout.contains("Problems"));

    let json = doctor(&dir, &["--json"], &variables).await;
    assert!(!json.stdout.contains(KEY) && !text.stdout.contains(KEY));
    let asked = server.requests();
    assert_eq!(asked.len(), 2);
    for request in asked {
        assert_eq!(request.path(), "/v1/models");
        assert!(request.head.contains(&format!("Bearer {KEY}")), "{}", request.head);
    }
    assert_eq!(std::fs::read_dir(dir.path(".")).unwrap().count(), 0);
}

#[tokio::test]
async fn the_report_has_stable_members() {
    let (report, code) = report(&TestDir::new(), &[]).await;
    assert_eq!((code, &report["ok"]), (0, &true.into()), "{report}");
    let members: Vec<_> = report.as_object().unwrap().keys().collect();
    assert_eq!(
        members,
        [
            "ok",
            "program",
            "configuration",
            "models",
            "stores",
            "runtimes",
            "telemetry",
            "advice",
            "problems"
        ]
    );
    assert_eq!(report["program"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(report["configuration"]["file"]["found"], false);
    assert_eq!(report["models"]["default_model"]["name"], "openai:small");
    assert_eq!(report["models"]["providers"][0]["models"][0], "small");
    let sqlite = &report["stores"]["sqlite"];
    assert_eq!((&sqlite["exists"], &sqlite["folder"]["writable"]), (&false.into(), &true.into()));
    assert!(sqlite["folder"]["free_bytes"].as_u64().unwrap() > 0);
    let promises = ["survives_kill", "survives_power_loss", "shared_by_processes"];
    for (store, holds) in [("sqlite", true), ("memory", false)] {
        for (index, promise) in promises.iter().enumerate() {
            let guarantee = &report["stores"][store]["guarantees"][index];
            assert_eq!(
                (&guarantee["promise"], &guarantee["holds"]),
                (&(*promise).into(), &holds.into())
            );
            assert!(!guarantee["reason"].as_str().unwrap().is_empty());
        }
    }
    let local = &report["runtimes"]["local"];
    assert_eq!(local["per_effect"][1]["holds"], true);
    assert_eq!(local["per_step"][1]["holds"], false);
}

#[tokio::test]
async fn a_database_is_described_and_not_changed() {
    let (dir, _) = TestDir::after_demo().await;
    let before = std::fs::read(dir.path("helix.db")).unwrap();
    let (report, code) = report(&dir, &[]).await;
    let sqlite = &report["stores"]["sqlite"];
    assert_eq!((code, &sqlite["exists"]), (0, &true.into()), "{sqlite}");
    let file = &sqlite["file"];
    assert_eq!((&file["schema"], &file["newest_schema"]), (&7.into(), &7.into()));
    assert_eq!((&file["journal_mode"], &file["sessions"]["completed"]), (&"wal".into(), &1.into()));
    assert!(file["chunks"].as_u64().unwrap() > 10, "{file}");
    assert!(std::fs::read(dir.path("helix.db")).unwrap() == before, "the file was changed");
}

#[tokio::test]
async fn a_stopped_session_is_advice() {
    let dir = TestDir::new();
    let demo = dir.start_demo("20", &[]).await;
    let (alive, _) = report(&dir, &[]).await;
    assert_eq!(alive["stores"]["sqlite"]["file"]["sessions"]["running"], 1);
    assert_eq!(codes(&alive["advice"]), [] as [&str; 0]);

    demo.signal(rustix::process::Signal::TERM);
    demo.end().await;
    let (stopped, code) = report(&dir, &[]).await;
    assert_eq!(stopped["stores"]["sqlite"]["file"]["sessions"]["stopped"], 1);
    assert_eq!((code, codes(&stopped["advice"])), (0, vec!["session_stopped"]));
}

#[tokio::test]
async fn sessions_of_an_engine_in_a_file_are_advice() {
    let (dir, session) = TestDir::after_demo().await;
    let export = dir.helix(&["sessions", "export", &session]).await.stdout;
    let engine = export.replace("\"runtime\":\"local\"", "\"runtime\":\"temporal\"");
    assert_ne!(engine, export);
    dir.write("export.json", engine);
    assert_eq!(
        dir.helix(&["sessions", "import", "export.json", "--db", "shared.db"]).await.code,
        0
    );
    let (report, code) = report(&dir, &["--db", "shared.db"]).await;
    assert_eq!((code, codes(&report["advice"])), (0, vec!["engine_on_one_machine"]));
    let message = report["advice"][0]["message"].as_str().unwrap();
    assert!(message.contains("sessions of temporal"), "{message}");
}

#[tokio::test]
async fn an_unusable_database_is_a_problem() {
    let dir = TestDir::new();
    std::fs::write(dir.path("diary.txt"), "dear diary\n".repeat(200)).unwrap();
    for (db, code) in [
        ("diary.txt", "store_corrupt"),
        (".", "config_invalid"),
        ("nowhere/helix.db", "config_invalid"),
        (":memory:", "config_invalid"),
    ] {
        let (report, exit) = report(&dir, &["--db", db]).await;
        assert_eq!((exit, &report["ok"]), (1, &false.into()), "{db}");
        assert_eq!(codes(&report["problems"]), [code], "{db}");
    }
    assert!(!dir.path("nowhere").exists());
}

#[tokio::test]
async fn a_bad_helix_toml_is_a_problem_and_does_not_hide_the_rest() {
    let (dir, _) = TestDir::after_demo().await;
    std::fs::write(dir.path("helix.toml"), "\n\n[provider.x]\n").unwrap();
    let text = doctor(&dir, &[], &[]).await;
    assert_eq!(text.code, 1);
    let (_, problems) = text.stdout.split_once("Problems").unwrap();
    assert!(problems.contains("helix.toml, line 3"), "{problems}");
    let (report, _) = report(&dir, &[]).await;
    assert_eq!(codes(&report["problems"]), ["config_invalid"]);
    assert_eq!(report["configuration"]["file"]["found"], true);
    assert_eq!(report["models"]["default_model"], Value::Null);
    assert_eq!(report["stores"]["sqlite"]["file"]["sessions"]["completed"], 1);
}

#[tokio::test]
async fn an_unavailable_default_model_is_a_problem() {
    let dir = TestDir::new();
    let server = model(Vec::new()).await;
    const GONE: &str = "provider_unavailable";
    const LISTLESS: &str = "unsupported";
    const LOCKED: &str = "config_invalid";
    let listless = Server::start(|_| Reply::of(404, "", "")).await;
    // No server listens on the port of the discard service.
    let file = format!(
        "[providers.good]\nbase_url = \"{}\"\n\
         [providers.listless]\nbase_url = \"{}\"\n\
         [providers.gone]\nbase_url = \"http://127.0.0.1:9/v1\"\n\
         [providers.locked]\nbase_url = \"https://example.com/v1\"\napi_key_env = \"LOCKED_KEY\"\n",
        url(&server),
        url(&listless)
    );
    std::fs::write(dir.path("helix.toml"), file).unwrap();
    for (model, problems, advice) in [
        ("good:small", vec![], vec![GONE, LISTLESS, LOCKED]),
        ("good:large", vec![], vec!["model_not_listed", GONE, LISTLESS, LOCKED]),
        ("listless:x", vec![], vec![LISTLESS, GONE, LOCKED]),
        ("gone:x", vec![GONE], vec![LISTLESS, LOCKED]),
        ("locked:x", vec![LOCKED], vec![GONE, LISTLESS]),
        ("other:x", vec!["model_unknown"], vec![GONE, LISTLESS, LOCKED]),
    ] {
        let done = doctor(&dir, &["--json"], &[("HELIX_MODEL", model)]).await;
        let report = done.json();
        assert_eq!(codes(&report["problems"]), problems, "{model}");
        assert_eq!(codes(&report["advice"]), advice, "{model}");
        assert_eq!(done.code, i32::from(!problems.is_empty()), "{model}");
    }
    let done = doctor(&dir, &["--json"], &[("HELIX_MODEL", "locked:x")]).await;
    let report = done.json();
    let locked = provider(&report, "locked");
    assert_eq!(
        (&locked["key"], &locked["key_variable"]),
        (&"missing".into(), &"LOCKED_KEY".into())
    );
}

#[tokio::test]
async fn each_failure_of_a_provider_is_explained() {
    let good = model(Vec::new()).await;
    let refusing = Server::start(|_| Reply::of(401, "", "{}")).await;
    let expired = Server::start(|_| {
        let body = r#"{"message":"The security token included in the request is expired"}"#;
        Reply::of(403, "x-amzn-errortype: ExpiredTokenException\r\n", body)
    })
    .await;
    let page =
        Server::start(|_| Reply::of(200, "content-type: text/html\r\n", "<html>Sign in</html>"))
            .await;
    let moved = Server::start(|_| Reply::of(302, "location: https://example.com/\r\n", "")).await;
    let mut file = "[providers.gone]\nbase_url = \"http://127.0.0.1:9/v1\"\n".to_owned();
    for (name, server, more) in [
        ("good", &good, ""),
        ("refusing", &refusing, "api_key_env = \"OTHER_KEY\"\n"),
        ("open", &refusing, ""),
        ("expired", &expired, "api_key_env = \"OTHER_KEY\"\napi = \"bedrock_converse\"\n"),
        ("page", &page, ""),
        ("moved", &moved, "api = \"anthropic_messages\"\n"),
    ] {
        file.push_str(&format!("[providers.{name}]\nbase_url = \"{}\"\n{more}", url(server)));
    }
    let dir = TestDir::new();
    dir.write("helix.toml", file);
    let variables = [("HELIX_MODEL", "good:small"), ("OTHER_KEY", KEY)];
    let done = doctor(&dir, &["--json"], &variables).await;
    assert_eq!(done.code, 0, "{}", done.stdout);
    assert!(!done.stdout.contains(KEY));
    let report = done.json();
    assert_eq!(provider(&report, "expired")["source"], "helix.toml");
    let advice = report["advice"].as_array().unwrap();
    for (name, code, remedy) in [
        ("gone", "provider_unavailable", "start the server, or correct its URL (`base_url`"),
        ("refusing", "provider_unauthorized", "check the key or token in OTHER_KEY"),
        ("open", "provider_unauthorized", "name the variable that holds it in `api_key_env`"),
        (
            "expired",
            "provider_credentials_expired",
            "get a new key or token, and set OTHER_KEY to it",
        ),
        ("page", "provider_protocol", "is the root of the API, which usually ends in `/v1`"),
        ("moved", "provider_rejected", "is the root of the API, such as https://api.anthropic"),
    ] {
        let is_about =
            |finding: &&Value| finding["message"].as_str().unwrap().contains(&format!("`{name}`"));
        let finding = advice.iter().find(is_about).unwrap_or_else(|| panic!("{name}: {advice:?}"));
        assert_eq!(finding["code"], code, "{finding}");
        assert!(finding["remedy"].as_str().unwrap().contains(remedy), "{finding}");
    }
    assert_eq!(advice.len(), 6, "{advice:?}");
}

#[tokio::test]
async fn providers_are_checked_at_the_same_time() {
    // Each server replies only when the other one has been asked, too.
    let gates = [Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0))];
    let start = |own: usize| {
        let (own, other) = (Arc::clone(&gates[own]), Arc::clone(&gates[1 - own]));
        Server::start(move |_| {
            other.add_permits(1);
            let body = r#"{"data":[{"id":"small"}]}"#;
            let head =
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";
            Reply::Pause(head.into(), Arc::clone(&own), body.into())
        })
    };
    let (one, two) = (start(0).await, start(1).await);
    let dir = TestDir::new();
    let [one, two] = [&one, &two].map(url);
    dir.write(
        "helix.toml",
        format!("[providers.one]\nbase_url = \"{one}\"\n[providers.two]\nbase_url = \"{two}\"\n"),
    );
    let done = doctor(&dir, &["--json"], &[("HELIX_MODEL", "one:small")]).await;
    let report = done.json();
    let providers = report["models"]["providers"].as_array().unwrap();
    assert!(providers.len() >= 2, "{providers:?}");
    for provider in providers {
        assert_eq!(provider["responds"], true, "{provider}");
    }
}

#[tokio::test]
async fn without_a_model_agents_do_not_run() {
    let done = doctor(&TestDir::new(), &["--json"], &[]).await;
    let report = done.json();
    // A model server may be running on this machine.
    let has_none = report["models"]["default_model"].is_null();
    let problems = if has_none { vec!["no_model"] } else { vec![] };
    assert_eq!((codes(&report["problems"]), done.code), (problems, i32::from(has_none)));
}
