//! Lists of models with several pages.

use std::time::Duration;

use helix_agents_core::error::ErrorCode;
use helix_agents_llm::{ApiFormat, ModelServer};
use serde_json::{Value, json};

use crate::support::{Reply, Server, adapter_of, options};

const TIMEOUT: Duration = Duration::from_secs(5);

fn page_of(prefix: &str, count: usize) -> Vec<Value> {
    (0..count).map(|number| json!({"id": format!("{prefix}-{number}")})).collect()
}

/// Requests the list from a server with these pages. Returns the models, and the path of each request.
async fn list(format: ApiFormat, pages: &[Value]) -> (Vec<String>, Vec<String>) {
    let pages = pages.iter().map(|page| Reply::json(&page.to_string())).collect();
    let server = Server::start(pages).await;
    let models = adapter_of(&server, format).models(TIMEOUT).await.unwrap();
    let path = |head: &str| head.split(' ').nth(1).unwrap().to_owned();
    (models, server.requests().iter().map(|request| path(&request.head)).collect())
}

#[tokio::test]
async fn anthropic_continues_after_the_last_id() {
    let pages = [
        json!({"data": [{"id": "a"}, {"id": "b"}], "has_more": true, "first_id": "a", "last_id": "b"}),
        json!({"data": [{"id": "c"}], "has_more": false, "first_id": "c", "last_id": "c"}),
    ];
    let (models, paths) = list(ApiFormat::AnthropicMessages, &pages).await;
    assert_eq!(models, ["a", "b", "c"]);
    assert_eq!(paths, ["/v1/models", "/v1/models?after_id=b"]);
}

#[tokio::test]
async fn gemini_continues_with_the_token() {
    let pages = [
        json!({"models": [{"name": "models/a"}], "nextPageToken": "x/1="}),
        json!({"models": [{"name": "models/b"}], "nextPageToken": "x/2="}),
        json!({"models": [{"name": "models/c"}], "nextPageToken": ""}),
    ];
    let (models, paths) = list(ApiFormat::GeminiGenerate, &pages).await;
    assert_eq!(models, ["a", "b", "c"]);
    let expected = ["/v1/models", "/v1/models?pageToken=x%2F1%3D", "/v1/models?pageToken=x%2F2%3D"];
    assert_eq!(paths, expected);
}

#[tokio::test]
async fn the_list_of_openai_has_one_page() {
    let page =
        json!({"data": [{"id": "a"}], "has_more": true, "last_id": "a", "nextPageToken": "x"});
    let (models, paths) = list(ApiFormat::OpenAiResponses, &[page]).await;
    assert_eq!((models.len(), paths.len()), (1, 1));
}

#[tokio::test]
async fn pages_and_models_are_limited() {
    let endless = json!({"data": page_of("m", 2), "has_more": true, "last_id": "m-1"});
    let (models, paths) = list(ApiFormat::AnthropicMessages, &vec![endless; 30]).await;
    assert_eq!((models.len(), paths.len()), (40, 20));
    let large = json!({"data": page_of("m", 700), "has_more": true, "last_id": "m-699"});
    let (models, paths) = list(ApiFormat::AnthropicMessages, &vec![large; 30]).await;
    assert_eq!((models.len(), paths.len()), (1000, 2));
}

#[tokio::test]
async fn an_error_on_a_later_page_is_the_error_of_the_list() {
    let first = json!({"data": [{"id": "a"}], "has_more": true, "last_id": "a"});
    let replies = vec![Reply::json(&first.to_string()), Reply::status(503, "", "{}")];
    let server = Server::start(replies).await;
    let error =
        adapter_of(&server, ApiFormat::AnthropicMessages).models(TIMEOUT).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ProviderUnavailable);
}

#[tokio::test]
async fn a_web_page_is_no_list() {
    let page = Reply::head("text/html; charset=utf-8").piece("<html></html>").end();
    let server = Server::start(vec![page]).await;
    let error = ModelServer::new(options(&server)).unwrap().models(TIMEOUT).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ProviderProtocol);
    assert!(error.message().contains("web page"), "{error}");
}
