//! The set of tools that a model sees.

use std::borrow::Cow;
use std::sync::Arc;

use crate::json::Json;
use crate::wire::WireCell;

/// The name of the tool by which a model returns the output of an agent with an output type.
pub const FINISH_TOOL: &str = "__finish__";

/// The prefix of the names of tools that start sub-agents.
pub const SUB_AGENT_PREFIX: &str = "subagent__";

/// The prefix of the names of tools that control companions.
pub const COMPANION_PREFIX: &str = "companion__";

const RESERVED_PREFIXES: [&str; 3] = [SUB_AGENT_PREFIX, COMPANION_PREFIX, "workspace__"];

/// Returns `true` if user-defined tools must not have this name.
#[must_use]
pub fn is_reserved(name: &str) -> bool {
    name == FINISH_TOOL || RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The description of a tool that the model sees.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolSpec {
    /// The tool's name.
    pub name: Arc<str>,
    /// What the tool does and when to call it.
    pub description: Arc<str>,
    /// The JSON schema of the arguments.
    pub input_schema: Json,
    /// Whether the provider should constrain the arguments to the schema, if it can.
    pub strict: bool,
}

impl ToolSpec {
    /// Creates the description of a tool with this name, purpose and schema of the arguments.
    pub fn new(
        name: impl Into<Arc<str>>,
        description: impl Into<Arc<str>>,
        input_schema: impl Into<Json>,
    ) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            input_schema: input_schema.into(),
            strict: false,
        }
    }

    /// Sets whether the provider should constrain the arguments to the schema, if it can.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }
}

/// All tools of an agent that the model sees. The set is built once per agent, in a fixed order, so
/// that the prompt caches of providers stay valid.
#[derive(Debug, Default)]
pub struct ToolSet {
    specs: Vec<ToolSpec>,
    wire: WireCell,
}

impl ToolSet {
    /// Creates a set of these tools, in this order.
    #[must_use]
    pub fn new(specs: Vec<ToolSpec>) -> Self {
        Self { specs, wire: WireCell::default() }
    }

    /// Returns the tools in order.
    #[must_use]
    pub fn specs(&self) -> &[ToolSpec] {
        &self.specs
    }

    /// Returns `true` if the set has no tools.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.specs.is_empty()
    }

    /// Returns the set encoded as `encoding`. The first call runs `encode` and caches the bytes.
    /// Calls with another encoding run `encode` each time.
    pub fn encoded(
        &self,
        encoding: &'static str,
        encode: impl Fn(&[ToolSpec], &mut Vec<u8>),
    ) -> Cow<'_, [u8]> {
        self.wire.get(encoding, |bytes| encode(&self.specs, bytes))
    }
}
