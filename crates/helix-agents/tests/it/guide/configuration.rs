//! The page on configuration names every setting, with the defaults of the code.

use helix_agents::providers::ModelCapabilities;

use super::read;

const PAGE: &str = "docs/src/configuration.md";

/// Returns the text between the first `start` and the next `end`.
#[track_caller]
fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let (_, rest) = text.split_once(start).unwrap_or_else(|| panic!("no `{start}`"));
    rest.split_once(end).unwrap_or_else(|| panic!("no `{end}` after `{start}`")).0
}

/// Returns the fields of a struct in a source file.
fn fields(file: &str, name: &str) -> Vec<String> {
    let source = read(file);
    let body = between(&source, &format!("struct {name} {{\n"), "\n}");
    let lines = body.lines().map(str::trim).filter(|line| !line.starts_with(['#', '/']));
    let names = lines.filter_map(|line| line.split_once(": "));
    names
        .map(|(name, _)| {
            name.trim_start_matches("pub").trim_start_matches("(super)").trim().to_owned()
        })
        .collect()
}

#[test]
fn every_environment_variable_is_named() {
    let page = read(PAGE);
    let source = read("crates/cli/src/env.rs") + &read("crates/llm/src/env.rs");
    let names: Vec<_> =
        source.split("name: \"").skip(1).filter_map(|part| part.split('"').next()).collect();
    assert!(names.len() >= 8, "{names:?}");
    for name in names {
        assert!(page.contains(&format!("| `{name}` |")), "{PAGE} does not name {name}");
    }
}

#[test]
fn every_key_of_helix_toml_and_of_the_model_settings_is_named() {
    let page = read(PAGE);
    let mut keys = fields("crates/llm/src/registry/config.rs", "ProviderConfig");
    keys.extend(fields("crates/core/src/contracts/llm.rs", "LlmConfig"));
    keys.extend(fields("crates/llm/src/registry/config.rs", "ConfigFile"));
    assert!(keys.len() >= 28, "{keys:?}");
    // A leading underscore marks a key that another program reads.
    let keys = keys.iter().map(|key| key.trim_start_matches('_'));
    for key in keys.filter(|key| *key != "providers") {
        let named = page.contains(&format!("`{key}`")) || page.contains(&format!("{key} = "));
        assert!(named, "{PAGE} does not name {key}");
    }
}

#[test]
fn the_capabilities_of_models_are_named_with_their_defaults() {
    let page = read(PAGE);
    let section = between(&page, "### Capabilities of models\n", "\n## ");
    let (_, table) = section.split_once("| member | meaning | default |\n|---|---|---|\n").unwrap();
    let row = |line: &str| {
        let cells = line.trim_matches(['|', ' ']).split(" | ");
        let cells: Vec<_> = cells.map(|cell| cell.trim_matches('`').to_owned()).collect();
        (cells[0].clone(), cells[2].clone())
    };
    let named: Vec<_> = table.lines().take_while(|line| line.starts_with('|')).map(row).collect();
    // The members and values of the code are those of the file.
    let code = serde_json::to_value(ModelCapabilities::default()).unwrap();
    let members = code.as_object().unwrap().iter();
    let members: Vec<_> = members.map(|(name, value)| (name.clone(), value.to_string())).collect();
    assert_eq!(named, members);
}

/// Checks texts of a page against the lines of code that they describe.
#[track_caller]
fn check_claims(page: &str, claims: &[(&str, &str, &str)]) {
    let text = read(page);
    for (here, file, there) in claims {
        assert!(text.contains(here), "{page} does not contain `{here}`");
        assert!(read(file).contains(there), "{file} no longer contains `{there}`: update {page}");
    }
}

#[test]
fn the_limits_of_doctor_are_those_of_the_code() {
    let file = "crates/llm/src/diagnosis.rs";
    let claims = [
        ("from up to 16 at once", file, "MAX_CHECKS: usize = 16;"),
        ("a timeout of 3 s", file, "MODELS_TIMEOUT: Duration = Duration::from_secs(3);"),
    ];
    check_claims("docs/src/command-line.md", &claims);
}

/// Defaults and limits: the text of the page, and the line of code that it describes.
#[test]
fn defaults_are_those_of_the_code() {
    let claims = [
        ("| 15 s |", "crates/runtime/src/settings.rs", "lease: Duration::from_secs(15),"),
        ("at least 300 ms", "crates/runtime/src/settings.rs", "Duration::from_millis(300)"),
        ("| 5 s |", "crates/runtime/src/settings.rs", "grace: Duration::from_secs(5),"),
        ("| 10 s |", "crates/store-sqlite/src/config.rs", "busy_timeout: Duration::from_secs(10),"),
        ("| 100,000 |", "crates/store-sqlite/src/config.rs", "stream_retention: 100_000,"),
        ("| 16 |", "crates/store-postgres/src/config.rs", "connections: 16,"),
        ("| 1 h |", "crates/runtime-durable/src/config.rs", "Duration::from_secs(60 * 60)"),
        ("| 10 |", "crates/runtime-durable/src/config.rs", "connections: 10,"),
        ("| 30 s |", "crates/store-postgres/src/config.rs", "operation: Duration::from_secs(30) }"),
        ("| 10 s |", "crates/store-postgres/src/config.rs", "connection: Duration::from_secs(10),"),
        ("| 12 |", "crates/runtime-temporal/src/builder.rs", "ATTEMPTS: u32 = 12;"),
        (
            "| 1,000 |",
            "crates/runtime-temporal/src/builder.rs",
            "WORK_ITEMS_PER_HISTORY: u32 = 1_000;",
        ),
        ("| 200 |", "crates/runtime-temporal/src/worker.rs", "activities: 200,"),
        (
            "| 2 s |",
            "crates/runtime-temporal/src/worker.rs",
            "sticky_timeout: Duration::from_secs(2),",
        ),
        ("likewise 100,000", "crates/store-memory/src/config.rs", "stream_retention: 100_000 "),
        (
            "| 50 ms |",
            "crates/store-sqlite/src/config.rs",
            "poll_interval: Duration::from_millis(50),",
        ),
        ("| `Full` |", "crates/store-sqlite/src/config.rs", "synchronous: Synchronous::Full,"),
        ("| 300000 |", "crates/llm/src/http.rs", "first_byte: Duration::from_secs(300)"),
        ("| 120000 |", "crates/llm/src/http.rs", "read: Duration::from_secs(120)"),
        (
            "before its first chunk was delivered; 3 |",
            "crates/core/src/contracts/llm.rs",
            "DEFAULT_MAX_RETRIES: u32 = 3;",
        ),
        (
            "| 64 MiB, or what",
            "crates/core/src/contracts/store/append.rs",
            "MAX_APPEND_BYTES: usize = 64 * 1024 * 1024;",
        ),
        ("| 1,000 bytes |", "crates/core/src/contracts/text.rs", "MAX_QUOTED: usize = 1_000;"),
        (
            "| 32 MiB (",
            "crates/llm/src/server/options.rs",
            "MAX_REPLY_BYTES: usize = 32 * 1024 * 1024;",
        ),
        ("| 200 bytes |", "crates/core/src/contracts/id.rs", "MAX_ID_BYTES: usize = 200;"),
        ("| 100 levels |", "crates/core/src/contracts/json.rs", "MAX_DEPTH: usize = 100;"),
        (
            "| 256, of 250,000 events",
            "crates/core/src/journal/cache.rs",
            "MAX_CACHED_SESSIONS: usize = 256;",
        ),
        ("| 1000 |", "crates/core/src/contracts/store/select.rs", "MAX_PAGE: u32 = 1000;"),
        ("| 20 pages,", "crates/llm/src/server/models.rs", "MAX_PAGES: usize = 20;"),
        (" pages, 1,000 models |", "crates/llm/src/server/models.rs", "MAX_MODELS: usize = 1000;"),
    ];
    check_claims(PAGE, &claims);
}

#[test]
fn every_option_of_the_builders_is_named() {
    let page = read(PAGE) + &read("docs/src/agents.md");
    let files = [
        "crates/core/src/contracts/agent/builder.rs",
        "crates/runtime-local/src/builder.rs",
        "crates/runtime-temporal/src/builder.rs",
        "crates/runtime-temporal/src/worker.rs",
        "crates/runtime/src/builder.rs",
        "crates/store-postgres/src/builder.rs",
        "crates/store-sqlite/src/builder.rs",
    ];
    for file in files {
        // The methods of a trait are public without a keyword.
        let start = if file.contains("crates/runtime/") { "\n    fn " } else { "\n    pub fn " };
        let source = read(file).replace("#[doc(hidden)]\n    pub fn", "");
        assert!(source.contains(start), "{file} has no methods");
        for method in source.split(start).skip(1) {
            let signature = method.split(['{', ';']).next().unwrap();
            let is_option =
                ["-> Self", "-> AgentBuilder"].iter().any(|result| signature.contains(result));
            let name = signature.split(['(', '<']).next().unwrap();
            let is_named =
                page.contains(&format!("`{name}(")) || page.contains(&format!("`{name}::<"));
            assert!(!is_option || is_named, "no page names {name} of {file}");
        }
    }
}

#[test]
fn the_page_lists_the_features_of_the_crate() {
    let manifest: toml::Table = toml::from_str(&read("crates/helix-agents/Cargo.toml")).unwrap();
    let page = read(PAGE);
    for feature in
        manifest["features"].as_table().unwrap().keys().filter(|feature| *feature != "default")
    {
        assert!(page.contains(&format!("| `{feature}` |")), "{PAGE} does not name {feature}");
    }
}
