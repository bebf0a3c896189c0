//! Tools as bytes, encoded once per agent.

use helix_agents_core::tool::ToolSpec;

use crate::json_writer::{Object, write_json};
use crate::strict::{Subset, strict};

/// Writes the list of tools. With `strict_tools`, tools that request strict mode are marked as
/// strict if their schema can be expressed in the strict subset.
pub(super) fn encode(specs: &[ToolSpec], strict_tools: bool, out: &mut Vec<u8>) {
    out.push(b'[');
    for (index, spec) in specs.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        encode_tool(spec, strict_tools, out);
    }
    out.push(b']');
}

fn encode_tool(spec: &ToolSpec, strict_tools: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"type\":\"function\",\"function\":");
    let mut function = Object::begin(out);
    function.member("name", &*spec.name);
    function.member("description", &*spec.description);
    let narrowed = (strict_tools && spec.strict)
        .then(|| strict(&spec.input_schema.to_value(), Subset::OpenAi));
    match narrowed.flatten() {
        Some(schema) => {
            write_json(function.value("parameters"), &schema);
            function.raw("strict", b"true");
        }
        None => function.raw("parameters", spec.input_schema.text().as_bytes()),
    }
    function.end();
    out.push(b'}');
}
