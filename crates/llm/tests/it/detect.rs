//! Detection of model servers on this machine.

use helix_agents_llm::{OutputFormat, ProviderRegistry, ServerProfile};

use crate::support::{Act, Ask, Reply, Server, content, finish, stream, text};

fn models(entries: &str) -> Reply {
    Reply::json(&format!(r#"{{"object":"list","data":[{entries}]}}"#))
}

#[tokio::test]
async fn the_first_server_with_a_model_wins() {
    let silent = Server::start(vec![Reply::default().then(Act::AwaitClose)]).await;
    let other = Server::start(vec![Reply::status(404, "", "{}")]).await;
    let page = Server::start(vec![Reply::head("text/html").piece("<html>").end()]).await;
    let empty = Server::start(vec![models("")]).await;
    let good = Server::start(vec![
        models(r#"{"id":"qwen3:0.6b","object":"model","owned_by":"library"},{"id":"other"}"#),
        Reply::events(stream([text("Hi."), finish("stop")])),
    ])
    .await;
    let ports = [&silent, &other, &page, &empty, &good].map(|server| server.port);
    let found = ProviderRegistry::detect_local_on(&ports).await.unwrap();
    assert_eq!((found.model.as_str(), found.port), ("qwen3:0.6b", good.port));
    assert_eq!(found.options.format.profile(), Some(&ServerProfile::compatible()));

    let registry = ProviderRegistry::new().with_local(&found).unwrap();
    let mut ask = Ask::default();
    ask.config.model = String::new();
    assert_eq!(content(&ask.answer(&registry).await), "Hi.");
    assert_eq!(good.requests()[1].json()["model"], "qwen3:0.6b");
}

#[tokio::test]
async fn the_python_server_of_llama_cpp_gets_its_profile() {
    let entry = r#"{"id":"local","object":"model","owned_by":"me","permissions":[]}"#;
    let server = Server::start(vec![models(entry)]).await;
    let found = ProviderRegistry::detect_local_on(&[server.port]).await.unwrap();
    let profile = found.options.format.profile().unwrap();
    assert!(profile.empty_content);
    assert_eq!(profile.output_format, OutputFormat::JsonObject);
}

#[tokio::test]
async fn without_a_server_there_is_none() {
    let server = Server::start(vec![models("")]).await;
    assert!(ProviderRegistry::detect_local_on(&[server.port]).await.is_none());
    assert!(ProviderRegistry::detect_local_on(&[]).await.is_none());
}
