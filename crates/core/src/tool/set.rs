//! The tools as a model sees them.

use std::borrow::Cow;
use std::sync::Arc;

use crate::json::Json;
use crate::wire::WireCell;

/// The tool by which a model hands in the output of an agent with an output type.
pub const FINISH_TOOL: &str = "__finish__";

/// Before the name of a sub-agent in the transcript.
pub const SUB_AGENT_PREFIX: &str = "subagent__";

/// Before the names of the tools by which a model handles its companions.
pub const COMPANION_PREFIX: &str = "companion__";

const RESERVED_PREFIXES: [&str; 3] = [SUB_AGENT_PREFIX, COMPANION_PREFIX, "workspace__"];

/// Whether a tool of the user's must not have this name.
#[must_use]
pub fn is_reserved(name: &str) -> bool {
    name == FINISH_TOOL || RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// One tool as a model sees it.
#[derive(Debug, Clone)]
pub struct ToolSpec {
    /// Its name.
    pub name: Arc<str>,
    /// What it does and when to call it.
    pub description: Arc<str>,
    /// The schema of its arguments.
    pub input_schema: Json,
    /// Whether the provider should constrain the arguments to the schema, where it can.
    pub strict: bool,
}

/// All tools of an agent as a model sees them: built once per agent, in a fixed order, so that
/// providers' prompt caches stay warm.
#[derive(Debug, Default)]
pub struct ToolSet {
    specs: Vec<ToolSpec>,
    wire: WireCell,
}

impl ToolSet {
    /// The set of these, in this order.
    #[must_use]
    pub fn new(specs: Vec<ToolSpec>) -> Self {
        Self { specs, wire: WireCell::default() }
    }

    /// The tools in order.
    #[must_use]
    pub fn specs(&self) -> &[ToolSpec] {
        &self.specs
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.specs.is_empty()
    }

    /// The set's bytes in `encoding`, made by `encode` the first time.
    pub fn encoded(
        &self,
        encoding: &'static str,
        encode: impl Fn(&[ToolSpec], &mut Vec<u8>),
    ) -> Cow<'_, [u8]> {
        self.wire.get(encoding, |bytes| encode(&self.specs, bytes))
    }
}
