//! Tools as bytes, encoded once per agent.

use helix_agents_core::tool::ToolSpec;

use crate::json_writer::{Object, write_json};
use crate::strict::{Subset, strict};

/// Writes the tools, separated by commas. `is_strict` tells whether the model can be constrained to schemas.
pub(super) fn encode(specs: &[ToolSpec], is_strict: bool, out: &mut Vec<u8>) {
    for (index, spec) in specs.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let mut tool = Object::begin(out);
        tool.member("name", &*spec.name);
        tool.member("description", &*spec.description);
        let narrowed = (is_strict && spec.strict)
            .then(|| strict(&spec.input_schema.to_value(), Subset::Anthropic))
            .flatten();
        match &narrowed {
            Some(schema) => {
                write_json(tool.value("input_schema"), schema);
                tool.member("strict", &true);
            }
            None => tool.raw("input_schema", spec.input_schema.text().as_bytes()),
        }
        tool.end();
    }
}
