//! The recording of conversation content: what is recorded, the redactor, and the limits.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// The size up to which an attribute with content is kept, in bytes. Longer ones are cut and marked.
pub const MAX_ATTRIBUTE_BYTES: usize = 16 * 1024;

/// The mark at the end of an attribute that was cut.
const CUT: &str = " [truncated]";

/// The origin of a text that a redactor receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Field {
    /// A message of the user, a correction or a system prompt.
    Input,
    /// The model's text.
    Output,
    /// The model's reasoning.
    Reasoning,
    /// The arguments of a tool call, as JSON.
    Arguments,
    /// The result of a tool call, as JSON.
    Result,
    /// A human's answer to a pending call, as JSON.
    Answer,
    /// The message of an error.
    Error,
}

type Redactor = dyn Fn(Field, &str) -> String + Send + Sync;

/// The content that spans contain. Default: none. Error messages count as content: without it, a span has the error's code.
///
/// # Examples
///
/// ```
/// use helix_agents_telemetry::{Content, Field};
///
/// let content = Content::recorded().redactor(|field, text| match field {
///     Field::Arguments => "[arguments]".to_owned(),
///     _ => text.replace("4111111111111111", "[card]"),
/// });
/// ```
#[derive(Clone, Default)]
pub struct Content {
    is_recorded: bool,
    includes_human: bool,
    has_full_input: bool,
    redactor: Option<Arc<Redactor>>,
}

impl Content {
    /// Records no content.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Records messages, arguments, results and error messages. [Human content](Self::human_content) is not included.
    #[must_use]
    pub fn recorded() -> Self {
        Self { is_recorded: true, ..Self::default() }
    }

    /// Returns the choice of the environment variable `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`: `SPAN_ONLY`,
    /// `SPAN_AND_EVENT` and `true` record content. Content is never recorded in separate events, so `EVENT_ONLY` records none.
    #[must_use]
    pub fn from_env() -> Self {
        let value = std::env::var("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT");
        Self::of_choice(&value.unwrap_or_default())
    }

    pub(crate) fn of_choice(choice: &str) -> Self {
        let is_recorded = ["SPAN_ONLY", "SPAN_AND_EVENT", "true"]
            .iter()
            .any(|known| known.eq_ignore_ascii_case(choice.trim()));
        if is_recorded { Self::recorded() } else { Self::none() }
    }

    /// Sets whether answers of humans and the arguments of calls that they approve are recorded as well. Messages contain the
    /// arguments of calls only with this. Default: `false`.
    #[must_use]
    pub fn human_content(mut self, includes: bool) -> Self {
        self.includes_human = includes;
        self
    }

    /// Records the whole conversation with each model call instead of the messages since the last call. The size of a
    /// session's spans then grows with the square of its length.
    #[must_use]
    pub fn full_input(mut self) -> Self {
        self.has_full_input = true;
        self
    }

    /// Sets a function that replaces each text before it is recorded. Texts are cut after that. A panic of the function is
    /// logged, and the spans of the append are not exported.
    #[must_use]
    pub fn redactor(
        mut self,
        redact: impl Fn(Field, &str) -> String + Send + Sync + 'static,
    ) -> Self {
        self.redactor = Some(Arc::new(redact));
        self
    }

    pub(crate) const fn is_recorded(&self) -> bool {
        self.is_recorded
    }

    pub(crate) const fn includes_human(&self) -> bool {
        self.is_recorded && self.includes_human
    }

    pub(crate) const fn has_full_input(&self) -> bool {
        self.has_full_input
    }

    /// Returns a text as it is recorded within an attribute.
    pub(crate) fn redacted<'a>(&self, field: Field, text: &'a str) -> Cow<'a, str> {
        match &self.redactor {
            Some(redact) => Cow::Owned(redact(field, text)),
            None => Cow::Borrowed(text),
        }
    }

    /// Returns a text as the value of an attribute.
    pub(crate) fn attribute(&self, field: Field, text: &str) -> String {
        cut(&self.redacted(field, text))
    }
}

/// Cuts the value of an attribute.
pub(crate) fn cut(text: &str) -> String {
    if text.len() <= MAX_ATTRIBUTE_BYTES {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(MAX_ATTRIBUTE_BYTES - CUT.len());
    format!("{}{CUT}", text.get(..end).unwrap_or_default())
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Content")
            .field("is_recorded", &self.is_recorded)
            .field("includes_human", &self.includes_human)
            .field("has_full_input", &self.has_full_input)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
