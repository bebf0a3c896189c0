//! The OpenAPI 3.1 document of the routes.

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::api_error::ErrorBody;
use crate::routes::{Input, Output, ROUTES, Route};

/// Returns the document.
pub(crate) fn document() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    // The document names its dialect once.
    settings.meta_schema = None;
    let mut generator = settings.into_generator();
    let error = generator.subschema_for::<ErrorBody>();
    let mut paths = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        let operation = operation(route, &error, &mut generator);
        if let Value::Object(path) = path {
            path.insert(route.method.as_str().to_ascii_lowercase(), operation);
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Helix Agents",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Agents behind HTTP: starts and resumes runs, streams and answers them.",
        },
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer" },
            },
        },
        "security": [{ "bearer": [] }],
    })
}

fn operation(route: &Route, error: &Schema, generator: &mut SchemaGenerator) -> Value {
    let mut operation = json!({
        "operationId": route.name,
        "summary": route.summary,
        "responses": responses(route, error, generator),
    });
    let Value::Object(members) = &mut operation else { return operation };
    let mut parameters = path_parameters(route.path);
    match route.input {
        Input::None => {}
        Input::Query(schema) => parameters.extend(query_parameters(schema, generator)),
        Input::Body(schema) | Input::ChatBody(schema) => {
            let content = json!({ "application/json": { "schema": schema(generator) } });
            members.insert("requestBody".into(), json!({ "required": true, "content": content }));
        }
    }
    if matches!(route.output, Output::Events(_)) {
        parameters.push(json!({
            "name": "Last-Event-ID",
            "in": "header",
            "description": "The id of the last event that the client has received.",
            "schema": { "type": "integer", "minimum": 0 },
        }));
    }
    if !parameters.is_empty() {
        members.insert("parameters".into(), parameters.into());
    }
    if route.action.is_none() {
        members.insert("security".into(), json!([]));
    }
    operation
}

fn responses(route: &Route, error: &Schema, generator: &mut SchemaGenerator) -> Value {
    let mut responses = Map::new();
    match route.output {
        Output::Json(schema, statuses) => {
            let content = json!({ "application/json": { "schema": schema(generator) } });
            for status in statuses {
                let description = status.canonical_reason().unwrap_or_default();
                let response = json!({ "description": description, "content": content });
                responses.insert(status.as_str().to_owned(), response);
            }
        }
        Output::Empty => {
            responses.insert("204".into(), json!({ "description": "No Content" }));
        }
        Output::Turn(schema) | Output::TurnOrEmpty(schema) => {
            let description = "Server-sent events. The data of each event is one of the protocol.";
            let content = json!({ "text/event-stream": { "schema": schema(generator) } });
            responses
                .insert("200".into(), json!({ "description": description, "content": content }));
            if matches!(route.output, Output::TurnOrEmpty(_)) {
                let description = "Nothing is in progress.";
                responses.insert("204".into(), json!({ "description": description }));
            }
        }
        Output::Events(schema) => {
            let description = "Server-sent events. The data of each event is a chunk, and its id the chunk's `seq`. The \
                               last event is `end`, with the status in which the session rests.";
            let content = json!({ "text/event-stream": { "schema": schema(generator) } });
            responses
                .insert("200".into(), json!({ "description": description, "content": content }));
        }
    }
    let content = json!({ "application/json": { "schema": error } });
    responses.insert("default".into(), json!({ "description": "An error.", "content": content }));
    Value::Object(responses)
}

/// Returns the parameters in braces of a path.
fn path_parameters(path: &str) -> Vec<Value> {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let parameter = |name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } });
    names.map(parameter).collect()
}

/// Returns a parameter for each member of the query's type.
fn query_parameters(
    schema: fn(&mut SchemaGenerator) -> Schema,
    generator: &mut SchemaGenerator,
) -> Vec<Value> {
    let reference = schema(generator);
    let name =
        reference.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
    let definition = name.and_then(|name| generator.definitions_mut().remove(name));
    let definition = definition.unwrap_or_else(|| reference.into());
    let required =
        definition.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let properties = definition.get("properties").and_then(Value::as_object).cloned();
    let parameter = |(name, mut schema): (String, Value)| {
        let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
        let is_required = required.iter().any(|required| *required == *name);
        json!({
            "name": name,
            "in": "query",
            "required": is_required,
            "description": description,
            "schema": schema,
        })
    };
    properties.unwrap_or_default().into_iter().map(parameter).collect()
}

#[cfg(test)]
mod tests;
