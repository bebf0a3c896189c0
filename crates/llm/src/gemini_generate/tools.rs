//! Tools as bytes, encoded once per agent.

use helix_agents_core::tool::ToolSpec;

use crate::json_writer::Object;

/// Writes the list of tools, which is one object with all functions.
pub(super) fn encode(specs: &[ToolSpec], out: &mut Vec<u8>) {
    out.extend_from_slice(b"[{\"functionDeclarations\":[");
    for (index, spec) in specs.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let mut tool = Object::begin(out);
        tool.member("name", &*spec.name);
        tool.member("description", &*spec.description);
        tool.raw("parametersJsonSchema", spec.input_schema.text().as_bytes());
        tool.end();
    }
    out.extend_from_slice(b"]}]");
}
