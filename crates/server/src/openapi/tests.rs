//! The OpenAPI document, against its schema and against the routes.

use std::collections::BTreeSet;

use serde_json::Value;

use super::document;
use crate::routes::{Input, ROUTES};

/// The official JSON Schema of OpenAPI 3.1 documents.
const SCHEMA: &str = include_str!("../../tests/data/openapi-3.1.schema.json");

fn operations(document: &Value) -> impl Iterator<Item = (String, String, &Value)> {
    let paths = document["paths"].as_object().unwrap().iter();
    paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().unwrap().iter();
        methods.map(move |(method, operation)| (path.clone(), method.to_uppercase(), operation))
    })
}

#[test]
fn the_document_fits_the_schema_of_openapi_3_1() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let document = document();
    let errors: Vec<_> = validator.iter_errors(&document).map(|error| error.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new());
    // The schema does detect errors.
    let mut wrong = document.clone();
    wrong["paths"]["/start"]["post"]["responses"]["202"]["description"] = Value::Null;
    assert!(!validator.is_valid(&wrong));
}

#[test]
fn the_document_has_each_route_and_no_other() {
    let document = document();
    let described: BTreeSet<_> =
        operations(&document).map(|(path, method, _)| (path, method)).collect();
    let routes = ROUTES.iter().map(|route| (route.path.to_owned(), route.method.to_string()));
    assert_eq!(described, routes.collect());
    let names: BTreeSet<_> = ROUTES.iter().map(|route| route.name).collect();
    assert_eq!(names.len(), ROUTES.len());
}

#[test]
fn every_schema_of_the_document_is_one_and_every_reference_leads_to_one() {
    let document = document();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        jsonschema::meta::validate(schema).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1) {
        let pointer = reference.split('"').next().unwrap();
        assert!(document.pointer(pointer).is_some(), "{pointer}");
    }
}

#[test]
fn only_the_open_route_needs_no_credentials_and_queries_are_parameters() {
    let document = document();
    for (path, method, operation) in operations(&document) {
        let route =
            ROUTES.iter().find(|route| route.path == path && route.method.as_str() == method);
        let route = route.unwrap();
        assert_eq!(operation.get("security").is_some(), route.action.is_none(), "{path}");
        let has_query = operation["parameters"].as_array().is_some_and(|parameters| {
            parameters.iter().any(|parameter| parameter["in"] == "query")
        });
        assert_eq!(has_query, matches!(route.input, Input::Query(_)), "{path}");
        let has_body = matches!(route.input, Input::Body(_) | Input::ChatBody(_));
        assert_eq!(operation.get("requestBody").is_some(), has_body);
    }
    let session = &document["paths"]["/sse"]["get"]["parameters"][0];
    assert_eq!(
        (session["name"].as_str(), session["required"].as_bool()),
        (Some("sessionId"), Some(true))
    );
}
