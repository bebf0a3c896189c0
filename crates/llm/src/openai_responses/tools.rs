//! Tools as bytes, encoded once per agent.

use helix_agents_core::tool::ToolSpec;

use crate::json_writer::{Object, write_json};
use crate::strict::{Subset, strict};

/// Writes the list of tools. Without the member `strict`, the server rewrites the schema to its strict subset.
pub(super) fn encode(specs: &[ToolSpec], out: &mut Vec<u8>) {
    out.push(b'[');
    for (index, spec) in specs.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let mut tool = Object::begin(out);
        tool.member("type", "function");
        tool.member("name", &*spec.name);
        tool.member("description", &*spec.description);
        let narrowed =
            spec.strict.then(|| strict(&spec.input_schema.to_value(), Subset::OpenAi)).flatten();
        match &narrowed {
            Some(schema) => write_json(tool.value("parameters"), schema),
            None => tool.raw("parameters", spec.input_schema.text().as_bytes()),
        }
        tool.member("strict", &narrowed.is_some());
        tool.end();
    }
    out.push(b']');
}
