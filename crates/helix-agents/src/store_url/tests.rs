//! Tests of parsing and showing the URLs of stores.

use std::path::Path;

use super::{StoreOptions, StoreUrl, open_store};
use crate::error::ErrorCode;

#[test]
fn a_url_is_shown_with_its_place_and_without_its_password() {
    for (url, expected) in [
        ("memory:", "memory:"),
        ("sqlite:helix.db", "sqlite:helix.db"),
        ("postgres://u:p@h:5432/d", "postgres://u@h:5432/d"),
        ("postgres://h/d?schema=walk", "postgres://h/d?schema=walk"),
        ("postgresql://u:p@h/d?password=p&schema=walk&user=x", "postgresql://u@h/d?schema=walk"),
        ("postgres://h/d?pooler=transaction&a=b", "postgres://h/d?pooler=transaction"),
        ("redis://:p@h:6379?prefix=a&prefix=b", "redis://@h:6379?prefix=a&prefix=b"),
        ("rediss://h", "rediss://h"),
    ] {
        let url = StoreUrl::parse(url).unwrap();
        assert_eq!(url.to_string(), expected);
        assert_eq!(format!("{url:?}"), format!("StoreUrl({expected:?})"));
    }
}

#[test]
fn the_path_of_a_file_follows_the_scheme() {
    for (url, path) in [
        ("sqlite:a.db", "a.db"),
        ("sqlite:/data/a b.db", "/data/a b.db"),
        ("sqlite://a.db", "a.db"),
        ("sqlite:///data/a.db", "/data/a.db"),
    ] {
        assert_eq!(url.parse::<StoreUrl>().unwrap(), StoreUrl::Sqlite(Path::new(path).into()));
    }
}

#[test]
fn other_urls_are_rejected_without_quoting_them() {
    for (url, because) in [
        ("helix.db", "the URL of the store has no scheme"),
        ("", "the URL of the store has no scheme"),
        ("mysql://u:secret@h/d", "no store has the scheme `mysql`"),
        ("sqlite:", "the URL of the store is incomplete after `sqlite:`"),
        ("sqlite://", "the URL of the store is incomplete after `sqlite:`"),
        ("memory:secret", "the URL of the store is incomplete after `memory:`"),
        ("postgres:secret", "the URL of the store is incomplete after `postgres:`"),
    ] {
        let error = StoreUrl::parse(url).unwrap_err();
        assert_eq!(error.code(), ErrorCode::ConfigInvalid);
        let forms = "the URL of a store has one of the forms `memory:`, `sqlite:FILE`, \
                     `postgres://…` and `redis://…`";
        assert_eq!(error.message(), format!("{because}; {forms}"));
    }
}

#[test]
fn a_missing_feature_is_named() {
    let error = StoreUrl::parse("redis://:secret@h").unwrap().without_feature();
    assert_eq!(
        error.to_string(),
        "unsupported: this program was built without Redis: enable the feature `store-redis` of \
         helix-agents; url=redis://@h"
    );
}

#[tokio::test]
async fn only_a_file_can_be_opened_read_only() {
    let url = StoreUrl::parse("redis://:secret@h").unwrap();
    let error = url.open(&StoreOptions::new().read_only()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "unsupported: only a SQLite file can be opened read-only; url=redis://@h"
    );
}

#[tokio::test]
async fn a_store_without_its_feature_is_not_opened() {
    let opened = open_store("memory:").await;
    if cfg!(feature = "store-memory") {
        opened.unwrap().close().await;
    } else {
        assert_eq!(opened.unwrap_err().code(), ErrorCode::Unsupported);
    }
}
