//! `helix doctor`.

use serde_json::Value;

use crate::support::server::{Reply, Server, model};
use crate::support::{Done, Place};

const KEY: &str = "hunter2";

fn url(server: &Server) -> String {
    format!("http://127.0.0.1:{}/v1", server.port)
}

/// What the doctor says, in an environment with these variables.
async fn doctor(place: &Place, args: &[&str], variables: &[(&str, &str)]) -> Done {
    let mut command = place.command(&[&["doctor"], args].concat());
    command.envs(variables.iter().copied());
    Done::of(command.output().await.unwrap())
}

/// The same as JSON, beside a server that works.
async fn report(place: &Place, args: &[&str]) -> (Value, i32) {
    let server = model(Vec::new()).await;
    let url = url(&server);
    let variables = [("OPENAI_BASE_URL", &*url), ("HELIX_MODEL", "openai:small")];
    let done = doctor(place, &[args, &["--json"]].concat(), &variables).await;
    (done.json(), done.code)
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
async fn where_everything_is_there_it_says_so_and_leaves_no_trace() {
    let place = Place::new();
    let server = model(Vec::new()).await;
    let url = url(&server);
    let variables =
        [("OPENAI_BASE_URL", &*url), ("OPENAI_API_KEY", KEY), ("HELIX_MODEL", "openai:small")];
    let text = doctor(&place, &[], &variables).await;
    assert_eq!((text.code, &*text.stderr), (0, ""), "{}", text.stdout);
    for told in [
        "HELIX_MODEL      openai:small",
        "OPENAI_API_KEY   set",
        "openai:small: HELIX_MODEL names it",
        &*url,
        "answers; models: small",
        "strict_output",
        "not there yet",
        "yes acknowledged appends survive a killed process",
        "synchronous=FULL",
        "no  acknowledged appends survive a power failure",
        "PerStep",
        "temporal, dbos",
        "Everything that an agent needs is here.",
    ] {
        assert!(text.stdout.contains(told), "`{told}` is not in:\n{}", text.stdout);
    }
    assert!(!text.stdout.contains('\u{1b}') && !text.stdout.contains("Problems"));

    let json = doctor(&place, &["--json"], &variables).await;
    assert!(!json.stdout.contains(KEY) && !text.stdout.contains(KEY));
    let asked = server.requests();
    assert_eq!(asked.len(), 2);
    for request in asked {
        assert_eq!(request.path(), "/v1/models");
        assert!(request.head.contains(&format!("Bearer {KEY}")), "{}", request.head);
    }
    assert_eq!(std::fs::read_dir(place.path(".")).unwrap().count(), 0);
}

#[tokio::test]
async fn the_report_has_members_that_scripts_rely_on() {
    let (report, code) = report(&Place::new(), &[]).await;
    assert_eq!((code, &report["ok"]), (0, &true.into()), "{report}");
    let members: Vec<_> = report.as_object().unwrap().keys().collect();
    assert_eq!(
        members,
        ["ok", "program", "configuration", "models", "stores", "runtimes", "advice", "problems"]
    );
    assert_eq!(report["program"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(report["configuration"]["file"]["found"], false);
    assert_eq!(report["models"]["chosen"]["name"], "openai:small");
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
async fn a_database_is_described_and_left_as_it_was() {
    let (place, _) = Place::after_demo().await;
    let before = std::fs::read(place.path("helix.db")).unwrap();
    let (report, code) = report(&place, &[]).await;
    let sqlite = &report["stores"]["sqlite"];
    assert_eq!((code, &sqlite["exists"]), (0, &true.into()), "{sqlite}");
    let file = &sqlite["file"];
    assert_eq!((&file["schema"], &file["newest_schema"]), (&6.into(), &6.into()));
    assert_eq!((&file["journal_mode"], &file["sessions"]["completed"]), (&"wal".into(), &1.into()));
    assert!(file["chunks"].as_u64().unwrap() > 10, "{file}");
    assert!(std::fs::read(place.path("helix.db")).unwrap() == before, "the file was changed");
}

#[tokio::test]
async fn a_session_whose_process_died_is_worth_a_look() {
    let place = Place::new();
    let demo = place.start_demo("20", &[]).await;
    let (alive, _) = report(&place, &[]).await;
    assert_eq!(alive["stores"]["sqlite"]["file"]["sessions"]["running"], 1);
    assert_eq!(codes(&alive["advice"]), [] as [&str; 0]);

    demo.signal(rustix::process::Signal::TERM);
    demo.end().await;
    let (died, code) = report(&place, &[]).await;
    assert_eq!(died["stores"]["sqlite"]["file"]["sessions"]["stopped"], 1);
    assert_eq!((code, codes(&died["advice"])), (0, vec!["session_stopped"]));
}

#[tokio::test]
async fn sessions_of_an_engine_in_a_file_are_worth_a_look() {
    let (place, session) = Place::after_demo().await;
    let export = place.helix(&["sessions", "export", &session]).await.stdout;
    let engine = export.replace("\"runtime\":\"local\"", "\"runtime\":\"temporal\"");
    assert_ne!(engine, export);
    place.write("export.json", engine);
    assert_eq!(
        place.helix(&["sessions", "import", "export.json", "--db", "shared.db"]).await.code,
        0
    );
    let (report, code) = report(&place, &["--db", "shared.db"]).await;
    assert_eq!((code, codes(&report["advice"])), (0, vec!["engine_on_one_machine"]));
    let message = report["advice"][0]["message"].as_str().unwrap();
    assert!(message.contains("sessions of temporal"), "{message}");
}

#[tokio::test]
async fn what_keeps_a_database_from_being_used_is_a_problem() {
    let place = Place::new();
    std::fs::write(place.path("diary.txt"), "dear diary\n".repeat(200)).unwrap();
    for (db, code) in [
        ("diary.txt", "store_corrupt"),
        (".", "config_invalid"),
        ("nowhere/helix.db", "config_invalid"),
        (":memory:", "config_invalid"),
    ] {
        let (report, exit) = report(&place, &["--db", db]).await;
        assert_eq!((exit, &report["ok"]), (1, &false.into()), "{db}");
        assert_eq!(codes(&report["problems"]), [code], "{db}");
    }
    assert!(!place.path("nowhere").exists());
}

#[tokio::test]
async fn a_bad_helix_toml_is_a_problem_and_does_not_hide_the_rest() {
    let (place, _) = Place::after_demo().await;
    std::fs::write(place.path("helix.toml"), "\n\n[provider.x]\n").unwrap();
    let text = doctor(&place, &[], &[]).await;
    assert_eq!(text.code, 1);
    let (_, problems) = text.stdout.split_once("Problems").unwrap();
    assert!(problems.contains("helix.toml, line 3"), "{problems}");
    let (report, _) = report(&place, &[]).await;
    assert_eq!(codes(&report["problems"]), ["config_invalid"]);
    assert_eq!(report["configuration"]["file"]["found"], true);
    assert_eq!(report["models"]["chosen"], Value::Null);
    assert_eq!(report["stores"]["sqlite"]["file"]["sessions"]["completed"], 1);
}

#[tokio::test]
async fn a_model_that_cannot_answer_is_a_problem_and_another_provider_is_not() {
    let place = Place::new();
    let server = model(Vec::new()).await;
    const GONE: &str = "provider_unavailable";
    const LISTLESS: &str = "unsupported";
    const LOCKED: &str = "config_invalid";
    let listless = Server::start(|_| Reply::of(404, "", "")).await;
    // Nothing listens on the port for discarded data.
    let file = format!(
        "[providers.good]\nbase_url = \"{}\"\n\
         [providers.listless]\nbase_url = \"{}\"\n\
         [providers.gone]\nbase_url = \"http://127.0.0.1:9/v1\"\n\
         [providers.locked]\nbase_url = \"https://example.com/v1\"\napi_key_env = \"LOCKED_KEY\"\n",
        url(&server),
        url(&listless)
    );
    std::fs::write(place.path("helix.toml"), file).unwrap();
    for (model, problems, advice) in [
        ("good:small", vec![], vec![GONE, LISTLESS, LOCKED]),
        ("good:large", vec![], vec!["model_not_listed", GONE, LISTLESS, LOCKED]),
        ("listless:x", vec![], vec![LISTLESS, GONE, LOCKED]),
        ("gone:x", vec![GONE], vec![LISTLESS, LOCKED]),
        ("locked:x", vec![LOCKED], vec![GONE, LISTLESS]),
        ("other:x", vec!["model_unknown"], vec![GONE, LISTLESS, LOCKED]),
    ] {
        let done = doctor(&place, &["--json"], &[("HELIX_MODEL", model)]).await;
        let report = done.json();
        assert_eq!(codes(&report["problems"]), problems, "{model}");
        assert_eq!(codes(&report["advice"]), advice, "{model}");
        assert_eq!(done.code, i32::from(!problems.is_empty()), "{model}");
    }
    let done = doctor(&place, &["--json"], &[("HELIX_MODEL", "locked:x")]).await;
    let locked = &done.json()["models"]["providers"][3];
    assert_eq!(
        (&locked["key"], &locked["key_variable"]),
        (&"missing".into(), &"LOCKED_KEY".into())
    );
}

#[tokio::test]
async fn without_a_model_agents_do_not_run() {
    let done = doctor(&Place::new(), &["--json"], &[]).await;
    let report = done.json();
    // Somebody may have a model server on this machine.
    let has_none = report["models"]["chosen"].is_null();
    let problems = if has_none { vec!["no_model"] } else { vec![] };
    assert_eq!((codes(&report["problems"]), done.code), (problems, i32::from(has_none)));
}
