//! Tests of headers.

use super::*;

fn check(name: &str, value: &str, variable: Option<&str>) -> Result<()> {
    let headers = HashMap::from([(name.to_owned(), value.to_owned())]);
    check_headers(&headers, |name| variable == Some(name))
}

#[test]
fn invalid_headers_are_refused() {
    assert!(check("x-key", "Basic a+b/c==", None).is_ok());
    for (name, value) in [("", "v"), ("x key", "v"), ("x-key", "a\r\nb"), ("x-key", "\u{e9}")] {
        assert!(check(name, value, None).is_err(), "{name:?}: {value:?}");
    }
}

/// The key of another receiver would be sent otherwise.
#[test]
fn variables_do_not_replace_headers() {
    let error = check("authorization", "Basic k", Some("OTEL_EXPORTER_OTLP_HEADERS")).unwrap_err();
    assert!(error.to_string().contains("OTEL_EXPORTER_OTLP_HEADERS"), "{error}");
    let without = check_headers(&HashMap::new(), |_| true);
    assert!(without.is_ok(), "the variables alone are used");
}

#[test]
fn values_arrive_as_they_are() {
    let (_, value) = escaped(("x-key".to_owned(), "a%20b".to_owned()));
    assert_eq!(value, "a%2520b");
}
