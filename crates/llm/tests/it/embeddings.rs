//! Vectors of texts.

use helix_agents_core::embed::{Embedder as _, EmbeddingModel, EmbeddingPurpose, Embeddings};
use helix_agents_core::error::{ErrorCode, Result};
use helix_agents_core::llm::RetryPolicy;
use helix_agents_llm::{ApiFormat, ModelServer};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{Reply, Server, adapter_of, options};

/// Embeds these texts on a server with these replies.
async fn embed(
    format: ApiFormat,
    texts: &[&str],
    replies: Vec<Reply>,
) -> (Result<Embeddings>, Server) {
    let server = Server::start(replies).await;
    let embedder = adapter_of(&server, format).embedder("e1").unwrap().dimensions(2);
    let model = EmbeddingModel { name: "local:e1", dimensions: Some(2) };
    assert_eq!(embedder.model(), model);
    let cancel = CancellationToken::new();
    (embedder.embed(texts, EmbeddingPurpose::Query, &cancel).await, server)
}

fn openai() -> ApiFormat {
    ApiFormat::OpenAiResponses
}

#[tokio::test]
async fn openai_vectors_are_ordered_by_their_index_and_may_be_base64() {
    let reply = json!({"data": [
        {"index": 1, "embedding": [3.0, 4.0]},
        // 1.0 and 2.0, little-endian.
        {"index": 0, "embedding": "AACAPwAAAEA="},
    ], "usage": {"prompt_tokens": 7}});
    let (found, server) = embed(openai(), &["a", "b"], vec![Reply::json(&reply.to_string())]).await;
    let found = found.unwrap();
    assert_eq!(found.vectors, [[1.0, 2.0], [3.0, 4.0]]);
    assert_eq!(found.usage.input_tokens, 7);
    let request = &server.requests()[0];
    assert!(request.head.starts_with("POST /v1/embeddings "), "{}", request.head);
    let body =
        json!({"model": "e1", "input": ["a", "b"], "encoding_format": "float", "dimensions": 2});
    assert_eq!(request.json(), body);
}

#[tokio::test]
async fn gemini_gets_the_purpose_of_each_text() {
    let reply =
        json!({"embeddings": [{"values": [1.0, 2.0]}], "usageMetadata": {"promptTokenCount": 3}});
    let replies = vec![Reply::json(&reply.to_string())];
    let (found, server) = embed(ApiFormat::GeminiGenerate, &["a"], replies).await;
    let found = found.unwrap();
    assert_eq!((found.vectors, found.usage.input_tokens), (vec![vec![1.0, 2.0]], 3));
    let request = &server.requests()[0];
    assert!(request.head.contains("/models/e1:batchEmbedContents "), "{}", request.head);
    let expected = json!({"requests": [{
        "model": "models/e1", "content": {"parts": [{"text": "a"}]},
        "taskType": "RETRIEVAL_QUERY", "outputDimensionality": 2,
    }]});
    assert_eq!(request.json(), expected);
}

#[tokio::test]
async fn many_texts_are_sent_in_several_requests() {
    let vectors = |count: usize| {
        let data: Vec<_> = (0..count).map(|_| json!({"embedding": [1.0, 2.0]})).collect();
        Reply::json(&json!({ "data": data }).to_string())
    };
    let (found, server) =
        embed(openai(), &["a"; 250], vec![vectors(100), vectors(100), vectors(50)]).await;
    assert_eq!(found.unwrap().vectors.len(), 250);
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn unusable_vectors_are_a_protocol_error() {
    for data in [
        json!([{"embedding": [1.0, 2.0]}]),
        json!([{"embedding": [1.0, 2.0]}, {"embedding": [1.0]}]),
        json!([{"embedding": [1.0, 2.0]}, {"embedding": []}]),
        json!([{"embedding": [1.0, 2.0], "index": 0}, {"embedding": [1.0, 2.0], "index": 0}]),
        json!([{"embedding": [1.0, 2.0]}, {"embedding": [1.0, 2.0], "index": 2}]),
        json!([{"embedding": [1.0, 2.0]}, {"embedding": "AACA"}]),
        json!([{"embedding": [1.0, 2.0]}, {"embedding": [1.0, 1e39]}]),
    ] {
        // A reply that cannot be read is requested again.
        let reply = |_| Reply::json(&json!({ "data": data }).to_string());
        let replies = (0..4).map(reply).collect();
        let (found, _server) = embed(openai(), &["a", "b"], replies).await;
        assert_eq!(found.unwrap_err().code(), ErrorCode::ProviderProtocol, "{data}");
    }
}

#[tokio::test]
async fn an_overloaded_server_is_asked_again_and_a_refused_key_is_not() {
    let reply = json!({"data": [{"embedding": [1.0, 2.0]}]});
    let replies = vec![Reply::status(503, "", "{}"), Reply::json(&reply.to_string())];
    let (found, server) = embed(openai(), &["a"], replies).await;
    assert_eq!(found.unwrap().vectors.len(), 1);
    assert_eq!(server.requests().len(), 2);
    let (found, server) = embed(openai(), &["a"], vec![Reply::status(401, "", "{}")]).await;
    assert_eq!(found.unwrap_err().code(), ErrorCode::ProviderUnauthorized);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn nothing_is_sent_without_texts_and_anthropic_has_no_embeddings() {
    let (found, server) = embed(openai(), &[], vec![]).await;
    assert_eq!(found.unwrap(), Embeddings::default());
    assert_eq!(server.requests().len(), 0);
    let options =
        options(&server).with_format(ApiFormat::AnthropicMessages).with_retry(RetryPolicy::new(0));
    let error = ModelServer::new(options).unwrap().embedder("e1").unwrap_err();
    assert_eq!(error.code(), ErrorCode::Unsupported);
}
