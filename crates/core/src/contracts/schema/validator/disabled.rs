//! The validator of builds without the feature `json-schema`. It cannot be created.

use std::iter::Empty;

use serde_json::Value;

pub(crate) enum Validator {}

impl Validator {
    pub(crate) fn compile(_schema: &Value) -> Result<Self, String> {
        let problem = "the feature `json-schema` of `helix-agents-core` is disabled; enable it to \
                       define agents and tools";
        Err(problem.to_owned())
    }

    pub(crate) fn is_valid(&self, _value: &Value) -> bool {
        match *self {}
    }

    pub(crate) fn violations(&self, _value: &Value) -> Empty<String> {
        match *self {}
    }

    pub(crate) fn outlines(&self, _schema: &Value, _value: &Value) -> Empty<String> {
        match *self {}
    }
}
