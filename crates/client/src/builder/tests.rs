//! Tests of addresses and tokens.

use super::*;

#[test]
fn an_address_may_have_a_path_prefix() {
    for (given, expected) in [
        ("http://localhost:8080", "http://localhost:8080"),
        (" https://example.com/api/ ", "https://example.com/api"),
        ("https://example.com/a/b", "https://example.com/a/b"),
    ] {
        assert_eq!(Client::builder(given).build().unwrap().url(), expected);
    }
}

#[test]
fn an_address_that_is_not_one_of_a_server_is_refused_without_being_repeated() {
    for given in [
        "",
        "example.com",
        "ftp://example.com",
        "https://ann:s3cret@example.com",
        "http://x/?s3cret",
    ] {
        let error = Client::builder(given).build().unwrap_err();
        assert!(error.is(ErrorCode::ConfigInvalid), "{given}: {error}");
        assert!(!format!("{error:?}").contains("s3cret"), "{error:?}");
    }
}

#[test]
fn a_token_that_cannot_be_a_header_is_refused_and_no_token_is_printed() {
    for given in ["", " \n", "s3cret\u{1}x"] {
        let error = Client::builder("http://localhost").token(given).build().unwrap_err();
        assert!(
            error.is(ErrorCode::ConfigInvalid) && !format!("{error:?}").contains("s3cret"),
            "{error:?}"
        );
    }
    let builder = Client::builder("http://localhost").token(" s3cret\n");
    let client = builder.clone().build().unwrap();
    for shown in [format!("{builder:?}"), format!("{client:?}"), format!("{:?}", client.transport)]
    {
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}
