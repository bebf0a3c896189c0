//! The table of statuses and error bodies.

use helix_agents_core::error::ErrorCode;
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::{Failure, Redactor, Secrets, Subject};

const SUBJECT: Subject<'static> = Subject { provider: "local", model: "m1" };

const NOTHING: Redactor<'static> = Redactor {
    secrets: Secrets { key: None, token: None, config: None, url: None },
    conversation: b"",
};

fn status(status: u16, headers: &[(&'static str, &'static str)], body: &str) -> Failure {
    let pairs = headers
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    let status = StatusCode::from_u16(status).unwrap();
    SUBJECT.status(status, &pairs.collect::<HeaderMap>(), body.as_bytes(), &NOTHING)
}

#[test]
fn every_status_has_its_code() {
    let table = [
        (401, ErrorCode::ProviderUnauthorized, false),
        (403, ErrorCode::ProviderUnauthorized, false),
        (429, ErrorCode::ProviderRateLimited, true),
        (408, ErrorCode::ProviderUnavailable, true),
        (409, ErrorCode::ProviderUnavailable, true),
        (424, ErrorCode::ProviderUnavailable, true),
        (425, ErrorCode::ProviderUnavailable, true),
        (498, ErrorCode::ProviderUnavailable, true),
        (499, ErrorCode::ProviderUnavailable, true),
        (500, ErrorCode::ProviderUnavailable, true),
        (502, ErrorCode::ProviderUnavailable, true),
        (503, ErrorCode::ProviderUnavailable, true),
        (529, ErrorCode::ProviderUnavailable, true),
        (400, ErrorCode::ProviderRejected, false),
        (402, ErrorCode::ProviderRateLimited, false),
        (404, ErrorCode::ProviderRejected, false),
        (413, ErrorCode::ProviderRejected, false),
        (422, ErrorCode::ProviderRejected, false),
        (501, ErrorCode::ProviderRejected, false),
        (302, ErrorCode::ProviderRejected, false),
    ];
    for (number, code, again) in table {
        let failure = status(number, &[], "");
        assert_eq!(failure.error.code(), code, "{number}");
        assert_eq!(failure.is_transient(), again, "{number}");
        assert!(failure.error.message().contains(&number.to_string()));
    }
}

#[test]
fn the_providers_retry_header_takes_precedence() {
    let never = status(503, &[("x-should-retry", "false")], "");
    assert!(!never.is_transient());
    let again = status(400, &[("x-should-retry", "true"), ("retry-after", "1")], "");
    assert!(again.is_transient());
    assert_eq!(again.error.retry_after().unwrap().as_secs(), 1);
    let without_credit = status(402, &[("x-should-retry", "true")], "{}");
    assert!(without_credit.is_transient());
    let loading = r#"{"error":{"message":"Loading.","code":"model_loading"}}"#;
    let again = status(400, &[("x-should-retry", "true")], loading);
    assert!(again.is_transient());
    assert_eq!(again.error.detail(), Some("Loading."));
    assert!(again.error.context().any(|pair| pair == ("provider_code", "model_loading")));
}

#[test]
fn an_account_without_quota_or_credit_is_not_retried() {
    let failures = [
        status(429, &[], r#"{"error":{"message":"x","type":"insufficient_quota"}}"#),
        status(429, &[], r#"{"error":{"message":"x","type":"insufficient_quota","code":""}}"#),
        status(402, &[], r#"{"error":{"message":"Insufficient Balance"}}"#),
        status(
            400,
            &[],
            r#"{"error":{"message":"Your credit balance is too low to access the API.","type":"invalid_request_error"}}"#,
        ),
        SUBJECT.reported(r#"{"type":"billing_error","message":"Pay first."}"#, &NOTHING),
    ];
    for failure in failures {
        assert_eq!(failure.error.code(), ErrorCode::ProviderRateLimited);
        let message = failure.error.message();
        assert!(
            message
                .starts_with("the account at the provider `local` has no quota or credit left (")
        );
        assert!(failure.error.detail().is_some());
        assert!(!failure.is_transient());
    }
}

#[test]
fn a_named_cause_has_its_own_code_with_any_status() {
    let table = [
        (
            r#"{"error":{"message":"Sign in.","code":"token_expired"}}"#,
            ErrorCode::ProviderCredentialsExpired,
            "the key or token of the provider `local` has expired (",
        ),
        (
            r#"{"error":{"message":"The model does not exist","code":"model_not_found"}}"#,
            ErrorCode::ProviderModelNotFound,
            "the provider `local` does not serve the model `m1` to this account (",
        ),
        (
            r#"{"error":{"message":"No.","code":"unsupported_country_region_territory"}}"#,
            ErrorCode::ProviderRegionUnsupported,
            "the provider `local` does not serve the model `m1` in this region (",
        ),
        (
            r#"{"error":{"message":"No.","code":"unsupported_file"}}"#,
            ErrorCode::MediaUnsupported,
            "the provider `local` reports that the model `m1` does not accept an attached image or file (",
        ),
    ];
    for (body, code, sentence) in table {
        let statuses =
            [400, 401, 403, 404, 429, 500].map(|number| (number, status(number, &[], body)));
        let reported = (200, SUBJECT.reported(body, &NOTHING));
        for (number, failure) in statuses.into_iter().chain([reported]) {
            assert_eq!(failure.error.code(), code, "{body}");
            assert!(failure.error.message().starts_with(sentence), "{}", failure.error);
            assert!(!failure.is_transient(), "{body}");
            // The provider's text about a key may contain a part of it.
            let has_detail = code != ErrorCode::ProviderCredentialsExpired && number != 401;
            assert_eq!(failure.error.detail().is_some(), has_detail, "{number} {body}");
        }
    }
    let page = status(404, &[], "<html>Not Found</html>");
    assert!(page.error.message().contains("rejected the request (404)"));
}

#[test]
fn a_request_without_a_model_has_no_error_about_one() {
    let subject = Subject { provider: "local", model: "" };
    let code = |body: &str| {
        let headers = HeaderMap::new();
        let failure = subject.status(StatusCode::BAD_REQUEST, &headers, body.as_bytes(), &NOTHING);
        assert!(!failure.error.message().contains("``"), "{}", failure.error);
        failure.error.code()
    };
    assert_eq!(code(r#"{"code":"model_not_found"}"#), ErrorCode::ProviderRejected);
    assert_eq!(code(r#"{"code":"unsupported_file"}"#), ErrorCode::ProviderRejected);
    assert_eq!(code(r#"{"code":"token_expired"}"#), ErrorCode::ProviderCredentialsExpired);
    assert_eq!(
        code(r#"{"code":"unsupported_country_region_territory"}"#),
        ErrorCode::ProviderRegionUnsupported
    );
}

#[test]
fn only_a_refused_key_or_token_is_a_reason_for_a_new_one() {
    for (number, body, expected) in [
        (401, "{}", true),
        (400, r#"{"error":{"message":"x","code":"invalid_api_key"}}"#, true),
        (403, r#"{"code":"ExpiredToken"}"#, true),
        (403, "{}", false),
        (404, "{}", false),
        (503, "{}", false),
        (400, r#"{"error":{"message":"Incorrect API key provided: x"}}"#, true),
        // A quote of the request, and a server that fails because of its own key.
        (400, r#"{"error":{"message":"bad input 'How do I fix Invalid API key?'"}}"#, false),
        (503, r#"{"error":{"message":"Invalid API key"}}"#, false),
    ] {
        assert_eq!(status(number, &[], body).refuses_key, expected, "{number} {body}");
    }
}

#[test]
fn a_message_that_may_quote_the_key_is_omitted_with_any_status() {
    let masked = "Incorrect API key provided: 7f3a9c****91bc";
    for message in [masked, &format!("Error: {masked}")] {
        let body = format!(r#"{{"error":{{"message":"{message}"}}}}"#);
        for number in [400, 404, 422, 429, 503] {
            assert_eq!(status(number, &[], &body).error.detail(), None, "{number} {message}");
        }
        let reported =
            SUBJECT.reported(&format!(r#"{{"message":"{message}","code":503}}"#), &NOTHING);
        assert_eq!(
            (reported.error.code(), reported.refuses_key),
            (ErrorCode::ProviderUnavailable, false)
        );
        assert_eq!(reported.error.detail(), None);
    }
}

#[test]
fn an_empty_code_and_a_capitalised_message_are_read() {
    let failure = status(400, &[], r#"{"error":{"Message":"No.","code":"","type":"bad_thing"}}"#);
    assert_eq!(failure.error.detail(), Some("No."));
    assert!(failure.error.context().any(|pair| pair == ("provider_code", "bad_thing")));
}

#[test]
fn a_code_that_looks_like_a_key_is_not_repeated() {
    let key = "AIzaSyForeign-4711";
    let failure = status(400, &[], &format!(r#"{{"error":{{"code":"{key}"}}}}"#));
    let malformed = SUBJECT.malformed(key, &NOTHING);
    for error in [failure.error, malformed.error] {
        assert!(!format!("{error:?}").contains(key));
    }
}

#[test]
fn error_bodies_are_read_in_every_form() {
    let bodies = [
        r#"{"error":{"message":"too long","type":"invalid_request_error"}}"#,
        r#"{"error":{"message":"too long","code":400}}"#,
        r#"{"error":"too long"}"#,
        r#"{"object":"error","message":"too long","code":400}"#,
        r#"{"detail":"too long"}"#,
        r#"{"detail":[{"loc":["body"],"msg":"too long","input":"SECRET"}]}"#,
        r#"[{"error":{"code":400,"message":"too long","status":"INVALID_ARGUMENT"}}]"#,
    ];
    for body in bodies {
        let failure = status(400, &[], body);
        let message = failure.error.message();
        assert_eq!(message, "the provider `local` rejected the request (400)", "{body}");
        assert_eq!(failure.error.detail(), Some("too long"), "{body}");
    }
}

#[test]
fn the_message_about_a_rejected_key_is_not_repeated() {
    let body = r#"{"error":{"message":"Incorrect API key provided: sk-ab***yz","code":"invalid_api_key"}}"#;
    let failure = status(401, &[], body);
    let text = format!("{:?} {}", failure.error, failure.error);
    assert!(!text.contains("sk-"), "{text}");
    assert!(text.contains("provider_code=invalid_api_key"), "{text}");
}

#[test]
fn errors_in_the_middle_of_a_stream_are_classified_by_status_or_code() {
    use ErrorCode::{
        ProviderRateLimited, ProviderRejected, ProviderUnauthorized, ProviderUnavailable,
    };
    let table = [
        // The status as a number or as text, whatever the code says.
        (r#"{"message":"x","code":429}"#, ProviderRateLimited),
        (r#"{"message":"x","code":"503","type":"invalid_request_error"}"#, ProviderUnavailable),
        (r#"{"message":"x","code":499,"status":"CANCELLED"}"#, ProviderUnavailable),
        // OpenAI. The type counts if the code says nothing.
        (r#"{"message":"x","type":"rate_limit_exceeded"}"#, ProviderRateLimited),
        (r#"{"message":"x","type":"tokens","code":"rate_limit_exceeded"}"#, ProviderRateLimited),
        (r#"{"message":"x","type":"invalid_request_error"}"#, ProviderRejected),
        (
            r#"{"message":"x","type":"invalid_request_error","code":"string_above_max"}"#,
            ProviderRejected,
        ),
        (r#"{"message":"x","code":"invalid_api_key"}"#, ProviderUnauthorized),
        (r#"{"message":"x","code":"server_error"}"#, ProviderUnavailable),
        (r#"{"message":"x","type":"BadRequestError"}"#, ProviderRejected),
        (r#"{"message":"x","code":"content_filter"}"#, ProviderRejected),
        // Anthropic.
        (r#"{"message":"x","type":"overloaded_error"}"#, ProviderUnavailable),
        (r#"{"message":"x","type":"api_error"}"#, ProviderUnavailable),
        (r#"{"message":"x","type":"timeout_error"}"#, ProviderUnavailable),
        (r#"{"message":"x","type":"rate_limit_error"}"#, ProviderRateLimited),
        (r#"{"message":"x","type":"authentication_error"}"#, ProviderUnauthorized),
        (r#"{"message":"x","type":"permission_error"}"#, ProviderUnauthorized),
        (r#"{"message":"x","type":"not_found_error"}"#, ProviderRejected),
        (r#"{"message":"x","type":"request_too_large"}"#, ProviderRejected),
        // Gemini without a number.
        (r#"{"message":"x","status":"RESOURCE_EXHAUSTED"}"#, ProviderRateLimited),
        (r#"{"message":"x","status":"UNAVAILABLE"}"#, ProviderUnavailable),
        (r#"{"message":"x","status":"INTERNAL"}"#, ProviderUnavailable),
        (r#"{"message":"x","status":"DEADLINE_EXCEEDED"}"#, ProviderUnavailable),
        (r#"{"message":"x","status":"UNAUTHENTICATED"}"#, ProviderUnauthorized),
        (r#"{"message":"x","status":"PERMISSION_DENIED"}"#, ProviderUnauthorized),
        (r#"{"message":"x","status":"INVALID_ARGUMENT"}"#, ProviderRejected),
        (r#"{"message":"x","status":"FAILED_PRECONDITION"}"#, ProviderRejected),
        (r#"{"message":"x","status":"NOT_FOUND"}"#, ProviderRejected),
        // Google's reasons count if the code and the type say nothing.
        (
            r#"{"message":"x","status":"UNKNOWN","details":[{"reason":"RATE_LIMIT_EXCEEDED"}]}"#,
            ProviderRateLimited,
        ),
        // An unknown error may be temporary.
        (r#"{"message":"x","type":"solar_flare"}"#, ProviderUnavailable),
        (r#""just a text""#, ProviderUnavailable),
    ];
    for (error, code) in table {
        let failure = SUBJECT.reported(error, &NOTHING);
        assert_eq!(failure.error.code(), code, "{error}");
        let may_pass = [ProviderRateLimited, ProviderUnavailable].contains(&code);
        assert_eq!(failure.is_transient(), may_pass, "{error}");
    }
}

#[test]
fn a_malformed_reply_may_be_asked_for_again_with_any_status() {
    let body = r#"{"error":{"message":"Bad call.","type":"invalid_request_error","code":"tool_use_failed"}}"#;
    for failure in [status(400, &[], body), SUBJECT.reported(body, &NOTHING)] {
        assert_eq!(failure.error.code(), ErrorCode::ProviderProtocol);
        assert_eq!(failure.error.detail(), Some("Bad call."));
        assert!(failure.is_transient());
    }
}
