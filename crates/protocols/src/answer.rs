//! Answers to calls, which the requests of both protocols contain.

use helix_agents_core::error::Result;
use helix_agents_core::event::Answer;
use helix_agents_core::id::{RequestId, SessionId};
use helix_agents_core::json::Json;
use helix_agents_core::schema::Schema;
use helix_agents_core::session::{CallRef, Submission};

use crate::digest::digest;
use crate::limits::invalid;

/// An answer to a call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Answered {
    /// The call.
    pub call: CallRef,
    /// The answer.
    pub answer: Answer,
    /// The digest of the arguments that were shown, for an approval.
    pub digest: Option<String>,
    /// The id of the request, which is the same whenever the same answer is posted.
    pub request: RequestId,
    /// The result as the client wrote it, if it is a text that can also be read as JSON.
    text: Option<String>,
}

impl Answered {
    pub(crate) fn new(call: CallRef, answer: Answer, digest_shown: Option<String>) -> Self {
        let content = serde_json::to_string(&answer).unwrap_or_default();
        let request = format!("answer-{}", digest([&*call.to_string(), &*content]));
        let request = RequestId::from(request);
        Self { call, answer, digest: digest_shown, request, text: None }
    }

    /// Creates the answer of a client whose protocol has only texts as results. JSON objects, arrays and strings are read
    /// as such, and every other text is a string.
    pub(crate) fn of_text(call: CallRef, text: String) -> Result<Self> {
        let is_value = text.trim_start().starts_with(['{', '[', '"']);
        let (json, string) = readings(&text)?;
        let result = json.filter(|_| is_value).unwrap_or(string);
        let answer = Self::new(call, Answer::Returned(result), None);
        Ok(Self { text: Some(text), ..answer })
    }

    /// Returns the answer with the type that the call expects. `schema` is the
    /// [schema of the pending call](helix_agents_core::event::PendingCall::schema).
    ///
    /// A client of AG-UI writes each result as a text, so `42` can be a number or a string. The text is read in the other
    /// way if only that fits the schema. Without a schema, and for all other answers, nothing changes. The id of the
    /// request stays the same.
    ///
    /// # Examples
    ///
    /// ```
    /// use helix_agents_core::event::Answer;
    /// use helix_agents_core::json::Json;
    /// use helix_agents_protocols::RequestLimits;
    /// use helix_agents_protocols::ag_ui::{RunAgentInput, RunIntent};
    ///
    /// let body = br#"{"threadId": "t", "runId": "r", "messages": [
    ///     {"id": "m", "role": "tool", "toolCallId": "1.0", "content": "42"}
    /// ]}"#;
    /// let input = RunAgentInput::decode(body, &RequestLimits::default())?;
    /// let RunIntent::Answer { answers } = input.intent else { panic!("the message is an answer") };
    /// let answer = answers[0].clone();
    /// assert_eq!(answer.answer, Answer::Returned(Json::parse(r#""42""#)?));
    ///
    /// let schema = Json::parse(r#"{"type": "integer"}"#)?;
    /// let answer = answer.for_schema(Some(&schema));
    /// assert_eq!(answer.answer, Answer::Returned(Json::parse("42")?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn for_schema(mut self, schema: Option<&Json>) -> Self {
        let schema = schema.and_then(|schema| Schema::from_value(schema.to_value()).ok());
        let (Some(schema), Some(text), Answer::Returned(result)) =
            (schema, &self.text, &self.answer)
        else {
            return self;
        };
        let fits = |value: &Json| schema.outline(&value.to_value()).is_none();
        let Ok((json, string)) = readings(text) else { return self };
        if !fits(result)
            && let Some(other) = json.into_iter().chain([string]).find(fits)
        {
            self.answer = Answer::Returned(other);
        }
        self
    }

    /// Returns the answer as a submission by this user, to a call in the tree of the root session `root`. A call that
    /// names no session is one of the root, even if only another session waits for a call with the same id.
    ///
    /// # Errors
    /// Returns [`AnswerInvalid`](helix_agents_core::error::ErrorCode::AnswerInvalid) if the answer cannot be written as
    /// JSON.
    pub fn submission(&self, root: &SessionId, by: Option<&str>) -> Result<Submission> {
        let mut call = self.call.clone();
        call.session.get_or_insert_with(|| root.clone());
        let submission = match &self.answer {
            Answer::Returned(result) => Submission::result(call, result)?,
            Answer::Error(message) => Submission::error(call, message.clone()),
            Answer::Approved { edited: Some(edited) } => Submission::approve_edited(call, edited)?,
            Answer::Denied { reason } => Submission::deny(call, reason.clone()),
            _ => Submission::approve(call),
        };
        let submission = submission.request(self.request.clone());
        let submission = match &self.digest {
            Some(digest) => submission.digest(digest.clone()),
            None => submission,
        };
        Ok(match by {
            Some(by) => submission.by(by),
            None => submission,
        })
    }
}

/// Returns a text as the JSON value that it contains, if any, and as a string.
fn readings(text: &str) -> Result<(Option<Json>, Json)> {
    let string = Json::from_serialize(text)
        .map_err(|_| invalid("the result of a call cannot be recorded"))?;
    Ok((Json::parse(text).ok(), string))
}
