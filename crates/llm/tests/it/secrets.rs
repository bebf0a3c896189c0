//! Keys occur in no error, no `Debug` output and no log line, wherever they are configured and whatever a server sends.
//! URLs contain them only in a query of the base URL.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use helix_agents_core::embed::{Embedder as _, EmbeddingPurpose};
use helix_agents_core::error::{Error, Result};
use helix_agents_core::llm::LlmConfig;
use helix_agents_llm::{ApiKey, Authenticator, ModelServer, ModelServerOptions, ProviderRegistry};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::support::{Act, Ask, Reply, Server, options, text};

/// A key without a prefix that the library recognises.
const MARKER: &str = "hunter2-marker-4711";

/// A key whose characters are encoded in URLs and separate words in headers.
const ODD_MARKER: &str = "hunter2/mark+4711==";

const ENCODED: &str = "hunter2%2Fmark%2B4711%3D%3D";

/// A key of another account, which a gateway might use.
const FOREIGN: &str = "AIzaSyForeign-4711";

/// The parts of keys that must not be seen. The last ones belong to the base64 forms of `user:KEY`.
const FORBIDDEN: [&str; 6] = [
    MARKER,
    "mark+4711",
    "mark%2B4711",
    FOREIGN,
    "dXNlcjpodW50ZXIyL21hcmsrNDcxM",
    "dXNlcjpodW50ZXIyLW1hcmtlci00NzEx",
];

#[derive(Debug)]
struct Tokens(&'static str);

#[async_trait]
impl Authenticator for Tokens {
    async fn token(&self) -> Result<ApiKey> {
        Ok(self.0.into())
    }
}

/// Changes options and settings so that they contain a marker.
type Plant = fn(ModelServerOptions, &mut LlmConfig, &'static str) -> ModelServerOptions;

fn header(config: &mut LlmConfig, name: &str, value: &str) {
    config.headers.insert(name.to_owned(), value.to_owned());
}

fn basic(key: &str) -> String {
    STANDARD.encode(format!("user:{key}"))
}

/// The places of a key.
const PLACES: &[(&str, Plant)] = &[
    ("API key", |options, _, key| options.with_api_key(key)),
    ("access token", |options, _, key| options.with_authenticator(Tokens(key))),
    ("authorization", |options, config, key| {
        header(config, "Authorization", &format!("Bearer {key}"));
        options
    }),
    ("basic authorization", |options, config, key| {
        header(config, "Authorization", &format!("Basic {}", basic(key)));
        options
    }),
    ("x-api-key", |options, config, key| {
        header(config, "x-api-key", key);
        options
    }),
    ("header of a gateway", |options, config, key| {
        header(config, "Helicone-Auth", &format!("Bearer {key}"));
        options
    }),
    ("cookie", |options, config, key| {
        header(config, "cookie", &format!("a=b; session={key}"));
        options
    }),
    ("quoted cookie", |options, config, key| {
        header(config, "cookie", &format!("a=b; session=\"{key}\"; c=d"));
        options
    }),
    ("provider options", |options, config, key| {
        let value = json!({"mcp_servers": [{"authorization_token": key}]});
        config.provider_options.insert("local".to_owned(), value.as_object().unwrap().clone());
        options
    }),
    ("query", |mut options, _, key| {
        options.base_url.push_str(&format!("?key={key}"));
        options
    }),
    ("encoded query", |mut options, _, key| {
        let encoded = if key == ODD_MARKER { ENCODED } else { key };
        options.base_url.push_str(&format!("?key={encoded}"));
        options
    }),
    #[cfg(feature = "sigv4")]
    ("AWS", |options, _, key| {
        let url = options.base_url;
        let mut options = ModelServerOptions::bedrock_openai("local", "eu-west-1");
        options.base_url = url;
        let credentials = helix_agents_llm::AwsCredentials::new("AKIDEXAMPLE", key);
        options.with_aws_credentials(credentials.with_session_token(key))
    }),
];

/// The failures, each with the key at the places where a server may repeat it.
fn failures(place: &str, key: &str) -> Vec<(&'static str, Reply)> {
    let encoded = if key == ODD_MARKER { ENCODED } else { key };
    let words = if place == "basic authorization" { basic(key) } else { key.to_owned() };
    let error = |code: &str| {
        let message = format!(
            "The key {key} is bad; url=/v1?key={encoded}, Bearer {key}, sid=\"{key}\", Basic {words}, \
             'https://host/v1?key={FOREIGN}'."
        );
        json!({"error": {"message": message, "code": code}}).to_string()
    };
    let events =
        |events: &[&str]| Reply::events(events.iter().map(|event| format!("data: {event}\n\n")));
    let page = format!("<html>{key}</html>");
    let long = text(&"x".repeat(5000));
    let code = |status| Reply::status(status, "", &error(key));
    vec![
        ("401", Reply::status(401, "", &error("invalid_api_key"))),
        ("403", Reply::status(403, "", &error("forbidden"))),
        ("400", Reply::status(400, "", &error("bad_request"))),
        ("404", Reply::status(404, "", &error("model_not_found"))),
        ("429", Reply::status(429, "", &error("rate_limit_exceeded"))),
        ("500", Reply::status(500, "", &error("server_error"))),
        ("code, 400", code(400)),
        ("code, 401", code(401)),
        ("expired", Reply::status(401, "", &error("token_expired"))),
        ("text", Reply::status(400, "", &format!("\"{key}\""))),
        ("encoded text", Reply::status(400, "", &format!("\"{encoded}\""))),
        ("redirect", Reply::status(307, &format!("location: http://127.0.0.1:9/{key}\r\n"), "")),
        ("page", Reply::head("text/html").piece(&page).end()),
        ("no JSON", Reply::json(key)),
        ("no event", events(&[key])),
        ("no chunk", events(&[&format!(r#"{{"choices":"{key}"}}"#)])),
        ("event", events(&[&error("server_error")])),
        ("code in an event", events(&[&error(key)])),
        ("after output", events(&[&text("Hi"), &error("server_error")])),
        ("too large", events(&[&long, &long])),
        ("cut", Reply::broken([format!("data: {{\"choices\":[{{\"{key}")])),
        ("no HTTP", Reply(vec![Act::Send(format!("{key}\r\n").into_bytes()), Act::Close])),
    ]
}

/// Collects all log lines.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<String>>);

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut self.clone());
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Visit for Lines {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        writeln!(self.0.lock().unwrap(), "{}={value:?} {value:#?}", field.name()).unwrap();
    }
}

/// Returns everything that an error shows, with its causes.
fn shown(error: &Error) -> String {
    let record = serde_json::to_string(&error.record()).unwrap();
    let mut text = format!("{error} {error:?} {error:#?} {record} {}", error.in_full());
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        write!(text, " {error} {error:?} {error:#?}").unwrap();
        cause = error.source();
    }
    text
}

/// Makes all kinds of requests with these options and returns what can be seen of them.
async fn outcome(options: ModelServerOptions, config: LlmConfig, server: &Server) -> String {
    let mut seen = format!("{options:?} {options:#?} {config:?} {config:#?}");
    let adapter = ModelServer::new(options.clone()).unwrap();
    let registry = ProviderRegistry::new().with_provider(options).unwrap();
    write!(seen, " {adapter:?} {adapter:#?} {registry:?} {:?}", registry.providers()).unwrap();
    let is_of_server = config.headers.is_empty() && config.provider_options.is_empty();
    let ask = Ask { config, max_retries: 1, ..Ask::default() };
    let response = ask.answer(&registry).await;
    write!(seen, " {response:?} {:?}", ask.sink.lines()).unwrap();
    if let helix_agents_core::step::StepResult::Error { error, .. } = &response.result {
        write!(seen, " {error} {error:?} {}", serde_json::to_string(error).unwrap()).unwrap();
    }
    // The headers and options of a model call are not sent with other requests.
    if is_of_server && let Err(error) = adapter.models(Duration::from_secs(5)).await {
        seen.push_str(&shown(&error));
    }
    let embedder = adapter.embedder("m").unwrap();
    write!(seen, " {embedder:?}").unwrap();
    let cancel = CancellationToken::new();
    if is_of_server {
        let found = embedder.embed(&["x"], EmbeddingPurpose::Query, &cancel).await;
        seen.push_str(&found.err().as_ref().map(shown).unwrap_or_default());
    }
    for request in server.requests() {
        let line = request.head.lines().next().unwrap();
        // A query of the base URL is part of each URL.
        seen.push_str(line.split('?').next().unwrap());
    }
    seen
}

#[tokio::test]
async fn no_failure_shows_a_key() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let keys = [MARKER, ODD_MARKER];
    let places = PLACES.iter().flat_map(|(place, plant)| keys.map(|key| (*place, *plant, key)));
    for (place, plant, key) in places {
        for (name, reply) in failures(place, key) {
            let server = Server::answering(move |_| reply.clone()).await;
            let mut config = LlmConfig::new("local:m1");
            let mut plain = options(&server).with_max_reply_bytes(4000);
            plain.api_key = None;
            let planted = plant(plain, &mut config, key).with_max_reply_bytes(4000);
            let planted = planted.with_retry(options(&server).retry);
            let seen = outcome(planted, config, &server).await;
            assert!(!server.requests().is_empty(), "{place}, {name}");
            check(&seen, place, name);
        }
    }
    let lines = lines.0.lock().unwrap();
    assert!(lines.contains("model call failed; retrying"), "{lines}");
    check(&lines, "", "log lines");
}

#[tokio::test]
async fn a_failed_connection_shows_no_key() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let server = Server::start(Vec::new()).await;
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = closed.local_addr().unwrap().port();
    drop(closed);
    for (place, plant) in PLACES {
        let mut config = LlmConfig::new("local:m1");
        let mut plain = options(&server);
        plain.api_key = None;
        plain.base_url = format!("http://127.0.0.1:{port}/v1");
        let planted = plant(plain, &mut config, MARKER).with_retry(options(&server).retry);
        check(&outcome(planted, config, &server).await, place, "closed port");
    }
    check(&lines.0.lock().unwrap(), "", "log lines");
}

#[test]
fn a_base_url_with_a_password_is_refused_and_not_shown() {
    for url in [
        format!("https://{MARKER}@example.com/v1"),
        format!("https://user:{MARKER}@example.com/v1"),
        format!("https://user:{MARKER}@exa mple.com/v1"),
        format!("{MARKER}/v1"),
        format!("ftp://example.com/?{MARKER}"),
    ] {
        let options = ModelServerOptions::new("local", &url);
        let shown_options = format!("{options:?} {options:#?}");
        check(&shown_options, &url, "options");
        check(&shown(&ModelServer::new(options.clone()).unwrap_err()), &url, "server");
        let error = ProviderRegistry::new().with_provider(options).unwrap_err();
        check(&shown(&error), &url, "registry");
        let file = format!("[providers.local]\nbase_url = \"{url}\"\n");
        check(&shown(&crate::config::load(&[], Some(&file)).unwrap_err()), &url, "file");
    }
}

#[track_caller]
fn check(seen: &str, place: &str, name: &str) {
    if let Some(at) = FORBIDDEN.iter().find_map(|part| seen.find(part)) {
        let start = seen.floor_char_boundary(at.saturating_sub(200));
        let end = seen.ceil_char_boundary(at + 100);
        panic!("{place}, {name}: …{}…", &seen[start..end]);
    }
}
