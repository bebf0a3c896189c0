//! Signatures, compared with those of botocore 1.44.8 (`SigV4Auth`) for the same requests.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::{Method, Request};

use super::AwsCredentials;

const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

/// Returns 2026-11-23T12:34:56Z.
fn time() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_795_437_296)
}

/// A request, and the signature that botocore computes for it.
struct Vector {
    method: Method,
    url: &'static str,
    headers: &'static [(&'static str, &'static str)],
    body: &'static str,
    session_token: Option<&'static str>,
    scope: (&'static str, &'static str),
    signed_headers: &'static str,
    signature: &'static str,
}

const VECTORS: [Vector; 4] = [
    Vector {
        method: Method::POST,
        url: "https://bedrock-runtime.eu-west-1.amazonaws.com/model/us.amazon.nova-micro-v1%3A0/converse-stream",
        headers: &[
            ("content-type", "application/json"),
            ("accept", "application/vnd.amazon.eventstream, application/json"),
        ],
        body: r#"{"messages":[]}"#,
        session_token: None,
        scope: ("eu-west-1", "bedrock"),
        signed_headers: "accept;content-type;host;x-amz-date",
        signature: "68e6d1b436c6522811ef861298767d48d9b8ea4ab373b336b40c73f91a37b273",
    },
    Vector {
        method: Method::POST,
        url: "https://bedrock-mantle.us-east-1.api.aws/anthropic/v1/messages",
        headers: &[("content-type", "application/json"), ("anthropic-version", "2026-10-21")],
        body: r#"{"text":"Grüße"}"#,
        session_token: Some("session/token+1=="),
        scope: ("us-east-1", "bedrock-mantle"),
        signed_headers: "anthropic-version;content-type;host;x-amz-date;x-amz-security-token",
        signature: "2c82ac9337a41655428578c5468ce8b470b55595a4a14fed5b90a3ea8c656c55",
    },
    Vector {
        method: Method::POST,
        url: "https://bedrock-runtime.eu-west-1.amazonaws.com/model/\
              arn%3Aaws%3Abedrock%3Aeu-west-1%3A123456789012%3Ainference-profile%2Feu.x-v1%3A0/converse-stream",
        headers: &[
            ("content-type", "application/json"),
            ("accept", "application/vnd.amazon.eventstream, application/json"),
        ],
        body: "{}",
        session_token: Some("t"),
        scope: ("eu-west-1", "bedrock"),
        signed_headers: "accept;content-type;host;x-amz-date;x-amz-security-token",
        signature: "776f1ce3339e04526652a863eb503c3362bda80d3bb205925e4bf96849c90faa",
    },
    Vector {
        method: Method::GET,
        url: "http://127.0.0.1:8080/anthropic/v1/models?after_id=claude-opus-5&x=a%20b",
        headers: &[("accept", "application/json")],
        body: "",
        session_token: None,
        scope: ("eu-west-1", "bedrock-mantle"),
        signed_headers: "accept;host;x-amz-date",
        signature: "bccbf724d36fe12400ee22367f5f4eab988fe539ba3d1d7a1b8cf45176e72c85",
    },
];

#[test]
fn signatures_are_those_of_botocore() {
    for vector in VECTORS {
        let mut request = Request::new(vector.method, vector.url.parse().unwrap());
        for (name, value) in vector.headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        *request.body_mut() = Some(vector.body.into());
        let mut credentials = AwsCredentials::new("AKIDEXAMPLE", SECRET);
        if let Some(token) = vector.session_token {
            credentials = credentials.with_session_token(token);
        }
        let (region, service) = vector.scope;
        credentials.sign(&mut request, region, service, time()).unwrap();
        let header = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap());
        let expected = format!(
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261123/{region}/{service}/aws4_request, \
             SignedHeaders={}, Signature={}",
            vector.signed_headers, vector.signature
        );
        assert_eq!(header("authorization"), Some(expected.as_str()), "{}", vector.url);
        assert_eq!(header("x-amz-date"), Some("20261123T123456Z"));
        assert_eq!(header("x-amz-security-token"), vector.session_token);
        let shown = format!("{request:?} {credentials:?}");
        assert!(!shown.contains(SECRET) && !shown.contains(vector.signature), "{shown}");
    }
}

#[test]
fn a_blank_variable_counts_as_not_set() {
    let missing = |blank: &'static str| {
        let lookup = |name: &str| Some(if name == blank { " " } else { "x" }.to_owned());
        AwsCredentials::from_lookup(&lookup).map(|credentials| credentials.session_token.is_some())
    };
    assert_eq!(missing("AWS_ACCESS_KEY_ID").unwrap_err().name, "AWS_ACCESS_KEY_ID");
    assert_eq!(missing("AWS_SECRET_ACCESS_KEY").unwrap_err().name, "AWS_SECRET_ACCESS_KEY");
    assert!(!missing("AWS_SESSION_TOKEN").unwrap());
    assert!(missing("OTHER").unwrap());
}
