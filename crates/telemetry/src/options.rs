//! Options of spans.

use crate::content::Content;
use crate::langfuse::Langfuse;

/// The assignment of turns to traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Layout {
    /// Each turn of a session is a trace, together with the turns of its sub-agents. A turn with a caller's trace belongs to
    /// that trace.
    #[default]
    Turn,
    /// A root session is one trace with all its turns and sub-agents. A caller's trace is linked.
    Session,
}

/// The options of [`spans`](crate::spans).
///
/// # Examples
///
/// ```
/// use helix_agents_telemetry::{Content, SpanOptions};
///
/// let options = SpanOptions::default().content(Content::recorded()).sample_ratio(0.1);
/// ```
#[derive(Debug, Clone, Default)]
pub struct SpanOptions {
    pub(crate) layout: Layout,
    pub(crate) content: Content,
    pub(crate) sample_ratio: Option<f64>,
    pub(crate) has_all_traces: bool,
    pub(crate) langfuse: Option<Langfuse>,
}

impl SpanOptions {
    /// Sets the layout. Default: [`Layout::Turn`].
    #[must_use]
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// Sets the recorded content. Default: none.
    #[must_use]
    pub fn content(mut self, content: Content) -> Self {
        self.content = content;
        self
    }

    /// Sets the share of traces that are exported, from 0 to 1. The trace id determines whether a trace is among them, so
    /// every process decides the same, and sub-agents follow their root. The sampled flag of a caller's trace takes
    /// precedence. Default: 1, also for NaN.
    #[must_use]
    pub fn sample_ratio(mut self, ratio: f64) -> Self {
        self.sample_ratio = (!ratio.is_nan()).then(|| ratio.clamp(0.0, 1.0));
        self
    }

    /// Returns the options for all traces: neither the ratio nor the sampled flag of a caller's trace excludes one. Use
    /// them to export a recorded session on request.
    #[must_use]
    pub fn all_traces(mut self) -> Self {
        self.has_all_traces = true;
        self
    }

    /// Adds the attributes that Langfuse reads.
    #[must_use]
    pub(crate) fn langfuse(mut self, langfuse: Langfuse) -> Self {
        self.langfuse = Some(langfuse);
        self
    }
}
