//! Tests of valid agent files and of the error messages for invalid ones.

mod hostile;
mod schema;

use std::fs;
use std::path::Path;
use std::time::Duration;

use expect_test::{Expect, expect};
use helix_agents_core::agent::{AnyAgent, Completion};
use helix_agents_core::budget::Budget;
use helix_agents_core::error::Result;
use helix_agents_runtime_local::TokioClock;
use tempfile::TempDir;

use super::{AgentFile, BuildOptions};

/// A file with every key.
const EVERYTHING: &str = r#"
name = "everything"
description = "Has it all."
prompt = "Be kind."
model = "mine:small"

[limits]
max_steps = 12.0
completion_retries = 1
tool_concurrency = 4
tool_timeout = "90s"
max_result_bytes = 200_000
tokens = 5000
tool_calls = 20
wall_time = "2m"

[settings]
max_output_tokens = 500
temperature = 0.0
top_p = 0.9
top_k = 40
presence_penalty = -1
frequency_penalty = 0.5
stop_sequences = ["END"]
seed = 7
max_retries = 5

[planner]
max_rounds = 11
timeout = "30s"
max_result_bytes = 4000
model = "mine:large"

[output]
strict = true
native = false
schema = { type = "object", required = ["sum"], properties = { sum = { type = "integer" } } }

[tools.files]
root = "data"
write = true
requires_approval = true
max_bytes = 1000

[tools.http]
hosts = ["api.example.com", "*.example.org", "127.0.0.1:8080"]
private = ["10.0.0.0/8"]
timeout = "10s"
max_bytes = 200_000
requires_approval = true

[tools.calculator]

[tools.time]
zone = "Europe/Berlin"

[tools.note]
max_notes = 5
max_chars = 100

[tools.shell]
root = "data"
allow = ["ls", "cargo test"]
timeout_seconds = 30
max_output_bytes = 5000
"#;

/// A folder with an agent file in it.
struct Fixture {
    folder: TempDir,
}

impl Fixture {
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("agent.toml"), text).unwrap();
        fs::create_dir(folder.path().join("data")).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn agent(&self) -> std::result::Result<AnyAgent, String> {
        let file = AgentFile::read(&self.path("agent.toml"));
        let agent = file.and_then(|file| built(&file, "mine:small", None));
        agent.map_err(|error| {
            let folder = self.folder.path().canonicalize().unwrap();
            error.message().replace(&format!("{}/", folder.display()), "")
        })
    }
}

/// Builds the agent of a file.
fn built(file: &AgentFile, model: &str, files: Option<&Path>) -> Result<AnyAgent> {
    let options = BuildOptions::new(TokioClock::new()).model(model);
    let options = files.into_iter().fold(options, BuildOptions::files);
    Ok(file.build(&options)?.into())
}

/// Checks the error message for a file.
#[expect(clippy::needless_pass_by_value, reason = "expect! returns an owned value")]
#[track_caller]
fn check_error(text: &str, expected: Expect) {
    expected.assert_eq(&Fixture::new(text).agent().unwrap_err());
}

#[test]
fn every_key_has_an_effect() {
    let agent = Fixture::new(EVERYTHING).agent().unwrap();
    let (limits, llm) = (agent.limits(), agent.llm());
    assert_eq!((&**agent.name(), agent.description()), ("everything", "Has it all."));
    assert_eq!((limits.max_steps, limits.completion_retries), (12, 1));
    assert_eq!((limits.tool_concurrency, limits.max_result_bytes), (4, 200_000));
    assert_eq!(limits.tool_timeout.as_secs(), 90);
    let budget = Budget::new().tokens(5000).tool_calls(20).wall_time(Duration::from_secs(120));
    assert_eq!(*agent.budget(), budget);
    assert_eq!((llm.model.as_str(), llm.max_output_tokens), ("mine:small", Some(500)));
    assert_eq!((llm.temperature, llm.top_p, llm.top_k), (Some(0.0), Some(0.9), Some(40)));
    assert_eq!((llm.presence_penalty, llm.frequency_penalty), (Some(-1.0), Some(0.5)));
    assert_eq!((llm.stop_sequences.as_slice(), llm.seed), (&["END".to_owned()][..], Some(7)));
    assert_eq!((llm.max_retries, llm.strict_output, llm.native_output), (Some(5), true, false));
    assert_eq!(*agent.completion(), Completion::Finish);
    let tools: Vec<_> = agent.effective_tools().specs().iter().map(|spec| &*spec.name).collect();
    let expected = [
        "list_files",
        "read_file",
        "write_file",
        "http_get",
        "calculate",
        "current_time",
        "shell",
        "note",
        "__finish__",
    ];
    assert_eq!(tools, expected);
    assert_eq!(agent.tool("http_get").unwrap().own_timeout().unwrap().as_secs(), 15);
}

#[test]
fn approval_and_shell_settings_are_validated() {
    check_error(
        "name = \"a\"\nprompt = \"b\"\n[tools.files]\nroot = \"data\"\nrequires_approval = true",
        expect![
            "agent.toml, line 5, column 1: `requires_approval` applies only to `write_file`: it needs `write`"
        ],
    );
    check_error(
        "name = \"a\"\nprompt = \"b\"\n[tools.shell]\nallow = [\"ls\", \"./own\", \" \"]",
        expect![[r#"
            agent.toml, line 4, column 16: `./own` must be the name of a program in PATH, or an absolute path
            agent.toml, line 4, column 25: the entry has no program"#]],
    );
    check_error(
        "name = \"a\"\nprompt = \"b\"\n[tools.shell]\nroot = \"..\"\nallow = [\"ls\"]",
        expect![
            "agent.toml, line 4, column 1: the folder `..` cannot be used: a path led outside of the filesystem (commands run in the agent file's own folder or one below it)"
        ],
    );
    check_error(
        "name = \"a\"\nprompt = \"b\"\n[tools.shell]\nrequires_approval = false",
        expect![[r#"
        agent.toml, line 3, column 8: `tools.shell.allow` is missing
        agent.toml, line 4, column 1: unknown key `tools.shell.requires_approval`; the known keys are `root`, `allow`, `timeout_seconds`, `max_output_bytes`"#]],
    );
}

#[test]
fn plans_have_to_fit_into_the_steps_and_need_tools() {
    let a = "name = \"a\"\nprompt = \"b\"\n";
    check_error(
        &format!("{a}[planner]\nmax_rounds = 8\n[limits]\nmax_steps = 8\n[tools.time]"),
        expect![
            "agent.toml, line 4, column 1: `max_rounds = 8` needs 9 steps, but `limits.max_steps` is 8; raise `max_steps` or lower `max_rounds`"
        ],
    );
    check_error(
        &format!("{a}[limits]\nmax_steps = 3\n[planner]"),
        expect![[r#"
            agent.toml, line 5, column 2: `max_rounds = 5` needs 6 steps, but `limits.max_steps` is 3; raise `max_steps` or lower `max_rounds`
            agent.toml, line 5, column 2: a planner needs tools: the file has no `[tools.…]`"#]],
    );
    check_error(
        &format!("{a}planner = true"),
        expect!["agent.toml, line 3, column 1: `planner` must be a table, not `true` or `false`"],
    );
    check_error(
        &format!("{a}[planner]\nrounds = 3\ntimeout = 5\n[tools.time]"),
        expect![[r#"
            agent.toml, line 4, column 1: unknown key `planner.rounds`; did you mean `max_rounds`?
            agent.toml, line 5, column 1: `planner.timeout` must be a string in quotes, not a number"#]],
    );
}

#[test]
fn a_name_and_a_prompt_are_enough() {
    let agent = Fixture::new("name = \"a\"\nprompt = \"b\"").agent().unwrap();
    assert_eq!(*agent.limits(), helix_agents_core::agent::Limits::default());
    assert!(agent.budget().is_unlimited());
    assert_eq!(*agent.completion(), Completion::Text);
    assert!(agent.effective_tools().is_empty());
}

#[test]
fn prompt_and_schema_can_be_in_separate_files() {
    let text = r#"
        name = "a"
        prompt_file = "texts/prompt.md"
        output = { schema_file = "answer.json", native = true }
    "#;
    let fixture = Fixture::new(text);
    fs::create_dir(fixture.path("texts")).unwrap();
    fs::write(fixture.path("texts/prompt.md"), "Be kind.").unwrap();
    fs::write(fixture.path("answer.json"), r#"{ "type": "object" }"#).unwrap();
    let agent = fixture.agent().unwrap();
    assert_eq!(*agent.completion(), Completion::Native);
    let message = agent.system_message(&serde_json::Value::Null).unwrap();
    assert!(format!("{message:?}").contains("Be kind."), "{message:?}");

    let digest = || AgentFile::read(&fixture.path("agent.toml")).unwrap().digest().to_owned();
    let before = digest();
    assert_eq!(digest(), before);
    fs::write(fixture.path("texts/prompt.md"), "Be rude.").unwrap();
    assert_ne!(digest(), before);
}

#[test]
fn a_link_is_resolved_to_the_folder_of_its_target() {
    let fixture = Fixture::new("");
    fs::create_dir(fixture.path("real")).unwrap();
    fs::write(fixture.path("real/agent.toml"), "name = \"a\"\nprompt_file = \"p.md\"").unwrap();
    fs::write(fixture.path("real/p.md"), "Be kind.").unwrap();
    std::os::unix::fs::symlink("real/agent.toml", fixture.path("link.toml")).unwrap();
    let file = AgentFile::read(&fixture.path("link.toml")).unwrap();
    assert_eq!(file.path(), fixture.path("real/agent.toml").canonicalize().unwrap());
}

#[test]
fn the_folder_of_the_file_tools_can_be_overridden() {
    let fixture = Fixture::new("name = \"a\"\nprompt = \"b\"\ntools.files.root = \"nowhere\"");
    let file = AgentFile::read(&fixture.path("agent.toml")).unwrap();
    assert!(built(&file, "m", None).is_err());
    let elsewhere = tempfile::tempdir().unwrap();
    assert!(built(&file, "m", Some(elsewhere.path())).is_ok());
    assert!(built(&file, "m", Some(Path::new("/no/such/folder"))).is_err());
}

#[test]
fn unknown_keys_are_reported_with_position_and_suggestion() {
    check_error(
        "nam = \"a\"\nprompt = \"b\"\n[limits]\nmax_step = 3\n[tool.time]\n[settings]\ncolor = 1\n",
        expect![[r#"
            agent.toml: `name` is missing
            agent.toml, line 1, column 1: unknown key `nam`; did you mean `name`?
            agent.toml, line 4, column 1: unknown key `limits.max_step`; did you mean `max_steps`?
            agent.toml, line 5, column 2: unknown key `tool`; did you mean `tools`?
            agent.toml, line 7, column 1: unknown key `settings.color`; the known keys are `max_output_tokens`, `temperature`, `top_p`, `top_k`, `presence_penalty`, `frequency_penalty`, `stop_sequences`, `seed`, `max_retries`"#]],
    );
    check_error(
        "name = \"a\"\nprompt = \"b\"\n[tools.calculator]\ndigits = 3\n",
        expect![
            "agent.toml, line 4, column 1: unknown key `tools.calculator.digits`; no keys are allowed here"
        ],
    );
    check_error(
        "name = \"a\"\nprompt = \"b\"\n\n  [tools]\n  http = { hosts = [\"a.test\"], host = 1 }\n",
        expect![
            "agent.toml, line 5, column 32: unknown key `tools.http.host`; did you mean `hosts`?"
        ],
    );
}

#[test]
fn wrong_types_and_values_are_reported_with_the_expected_ones() {
    check_error(
        r#"
name = "a b"
prompt = 3
model = ["a"]
[limits]
max_steps = 0
tool_timeout = 30
completion_retries = 1.5
max_result_bytes = 999_999_999
[settings]
temperature = 3.5
stop_sequences = [1, ""]
[tools.files]
root = ""
write = "yes"
[tools.http]
hosts = []
timeout = "a while"
"#,
        expect![[r#"
            agent.toml, line 2, column 1: `name` must look like `reader` or `tax-helper_2`
            agent.toml, line 3, column 1: `prompt` must be a string in quotes, not a number
            agent.toml, line 4, column 1: `model` must be a string in quotes, not a list
            agent.toml, line 6, column 1: `limits.max_steps` must be at least 1
            agent.toml, line 7, column 1: `limits.tool_timeout` must be a string in quotes, not a number
            agent.toml, line 8, column 1: `limits.completion_retries` must be an integer, not a number with a fraction
            agent.toml, line 9, column 1: `limits.max_result_bytes` must be at most 16777216
            agent.toml, line 11, column 1: `settings.temperature` must be at most 2.0
            agent.toml, line 12, column 19: `settings.stop_sequences.0` must be a string in quotes, not a number
            agent.toml, line 12, column 22: `settings.stop_sequences.1` must not be empty
            agent.toml, line 14, column 1: `tools.files.root` must not be empty
            agent.toml, line 15, column 1: `tools.files.write` must be `true` or `false`, not a string
            agent.toml, line 17, column 1: `tools.http.hosts` must not be empty
            agent.toml, line 18, column 1: `tools.http.timeout` must look like `500ms` or `30s` or `2m`"#]],
    );
}

#[test]
fn missing_and_duplicate_keys_are_reported() {
    check_error(
        "",
        expect![[r#"
        agent.toml: `name` is missing
        agent.toml: `prompt` or `prompt_file` is missing"#]],
    );
    check_error(
        "name = \"a\"\nprompt = \"b\"\nprompt_file = \"c\"\n[output]\n",
        expect![[r#"
        agent.toml: only one of `prompt` or `prompt_file` may be given
        agent.toml, line 4, column 2: `output.schema` or `output.schema_file` is missing"#]],
    );
    check_error(
        "name = \"a\"\nprompt = \"b\"\n[tools.files]\n[tools.http]\n",
        expect![[r#"
        agent.toml, line 3, column 8: `tools.files.root` is missing
        agent.toml, line 4, column 8: `tools.http.hosts` is missing"#]],
    );
    check_error(
        "name = \"a\"\nprompt = \"b\"\nname = \"c\"",
        expect!["agent.toml, line 3, column 1: the file is not valid TOML: duplicate key"],
    );
}

#[test]
fn invalid_toml_is_reported_with_its_position() {
    check_error(
        "name = \"a\nprompt = \"b\"",
        expect![[
            r#"agent.toml, line 1, column 10: the file is not valid TOML: invalid basic string, expected `"`"#
        ]],
    );
    check_error(
        "name = \"ä\"; prompt",
        expect![
            "agent.toml, line 1, column 11: the file is not valid TOML: unexpected key or value, expected newline, `#`"
        ],
    );
    check_error(
        "name = 99999999999999999999\nprompt = nan\nmodel = 2024-01-01",
        expect![[r#"
        agent.toml, line 1, column 8: the number is too large
        agent.toml, line 2, column 10: the number is not finite, or too large
        agent.toml, line 3, column 9: dates are not supported; write a string in quotes"#]],
    );
}

#[test]
fn invalid_tool_settings_are_reported_with_their_position() {
    check_error(
        "name = \"a\"\nprompt = \"b\"\n[tools.http]\nhosts = [\"a.test\", \"http://b.test\"]\n\
         private = [\"10\"]\n",
        expect![[r#"
            agent.toml, line 4, column 20: `http://b.test` is not a host; write it like `api.example.com`, `*.example.org` or `127.0.0.1:8080`
            agent.toml, line 5, column 12: `10` is not an address range; write it like `10.0.0.0/8`"#]],
    );
    check_error(
        "name = \"a\"\nprompt = \"b\"\n[tools.time]\nzone = \"Mars/Olympus\"\n",
        expect![
            "agent.toml, line 4, column 1: unknown time zone `Mars/Olympus`; use an IANA name such as Europe/Berlin or UTC"
        ],
    );
    check_error(
        "name = \"a\"\nprompt = \"b\"\n[tools.files]\nroot = \"nowhere\"\n",
        expect![
            "agent.toml, line 4, column 1: the folder `nowhere` cannot be opened: No such file or directory (os error 2) (an agent file may access its own folder and folders below it; `--files FOLDER` allows another one)"
        ],
    );
}

#[test]
fn an_agent_cannot_write_its_own_file() {
    let of = |root: &str, write: bool| {
        let text = format!("name = \"a\"\nprompt = \"b\"\ntools.files.root = \"{root}\"\n");
        Fixture::new(&format!("{text}tools.files.write = {write}\n")).agent()
    };
    for root in [".", "./", "data/.."] {
        assert!(of(root, false).is_ok(), "{root}");
        let problem = of(root, true).unwrap_err();
        assert!(problem.contains("line 3, column 13: `agent.toml` is in the folder"), "{problem}");
    }
    assert!(of("data", true).is_ok());
}

#[test]
fn a_file_need_not_be_a_file() {
    let text = "name = \"a\"\nprompt = \"b\"\n";
    let parse = |more: &str| AgentFile::parse("built in", &format!("{text}{more}"));
    let file = parse("").unwrap();
    assert_eq!((file.name(), file.path()), ("a", Path::new("built in")));
    // It has no folder that its agent could access.
    let problem = parse("output.schema_file = \"Cargo.toml\"").unwrap_err();
    let without = "the agent file was not read from a folder";
    assert!(problem.message().contains(without), "{problem}");
    for tool in ["files.root = \".\"", "shell.allow = [\"ls\"]"] {
        let file = parse(&format!("tools.{tool}")).unwrap();
        let problem = built(&file, "m", None).unwrap_err();
        assert!(problem.message().contains(without), "{problem}");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = parse("tools.files.root = \".\"").unwrap();
    assert!(built(&file, "m", Some(folder.path())).is_ok());
}
