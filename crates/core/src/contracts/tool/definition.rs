//! The erased form of a tool, which agents hold and runtimes run.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::approval::AnswerOptions;
use super::context::ToolContext;
use super::error::ToolError;
use super::function::ToolFunction;
use crate::error::{Error, ErrorCode, Result};
use crate::json::Json;
use crate::llm::RetryPolicy;
use crate::schema::Schema;
use crate::text::{MAX_QUOTED, excerpt_of};

/// The effect of running a tool twice. It determines how a call with an unknown outcome is handled
/// after a crash.
///
/// # Examples
///
/// ```
/// # use helix_agents_core::tool::{ToolContext, ToolError};
/// use helix_agents_core::tool::{EffectClass, Tool};
/// # use serde_json::{Value, json};
/// # let schema = json!({"type": "object"});
/// # async fn transfer(_: Value, _: ToolContext) -> Result<Value, ToolError> { Ok(json!("done")) }
///
/// let tool = Tool::dynamic("transfer", "Transfers money.", schema, transfer)
///     .effect(EffectClass::AtMostOnce);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum EffectClass {
    /// The tool only reads. It runs again.
    Pure,
    /// Running the tool twice with the same idempotency key has the same effect as running it once.
    /// It runs again.
    #[default]
    Idempotent,
    /// The tool must not run twice. Its start is recorded before it runs. A call with an unknown
    /// outcome is passed to the tool's `reconcile`; without one the model is told that the outcome
    /// is unknown.
    AtMostOnce,
}

/// The result of reconciling a call whose outcome is unknown.
#[derive(Debug, Clone, PartialEq)]
pub enum ReconcileOutcome {
    /// The call took effect and returned this result.
    Completed(Value),
    /// The call had no effect: run it now.
    NotExecuted,
    /// The outcome cannot be determined. The model is told so.
    Unknown,
}

/// Converts the result of a finish tool into the agent's output.
pub type FinishTransform = Arc<dyn Fn(Value) -> Result<Value, ToolError> + Send + Sync>;

/// A function that determines the outcome of a call that a crash interrupted. It receives the
/// call's arguments and a context with its idempotency key.
pub type Reconcile =
    Arc<dyn Fn(Value, ToolContext) -> BoxFuture<'static, ReconcileOutcome> + Send + Sync>;

type Run =
    Arc<dyn Fn(&Json, ToolContext) -> BoxFuture<'static, Result<Json, ToolError>> + Send + Sync>;

/// A tool with its options. Created from a `#[tool]` function, or by [`Tool::function`].
///
/// # Examples
///
/// ```
/// use helix_agents_core::tool::{EffectClass, Tool, ToolContext};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Lookup {
///     city: String,
/// }
///
/// let tool = Tool::function("lookup", "Looks up a city", |input: Lookup, _cx: ToolContext| {
///     async move { Ok(format!("{} has 3 entries", input.city)) }
/// })
/// .effect(EffectClass::Pure);
/// assert_eq!(tool.name(), "lookup");
/// ```
#[derive(Clone)]
pub struct Tool {
    pub(crate) name: Arc<str>,
    pub(crate) description: Arc<str>,
    pub(crate) input: Result<Schema, Arc<Error>>,
    pub(crate) output: Option<Result<Schema, Arc<Error>>>,
    pub(crate) run: Run,
    pub(crate) finish: bool,
    pub(crate) transform: Option<FinishTransform>,
    pub(crate) strict: bool,
    pub(crate) timeout: Option<Duration>,
    pub(crate) retry: Option<RetryPolicy>,
    pub(crate) effect: Option<EffectClass>,
    pub(crate) answer_options: AnswerOptions,
    pub(crate) reconcile: Option<Reconcile>,
}

impl<T: ToolFunction> From<T> for Tool {
    fn from(function: T) -> Self {
        let function = Arc::new(function);
        Self::function(T::NAME, T::DESCRIPTION, move |input: T::Input, cx: ToolContext| {
            let function = Arc::clone(&function);
            async move { function.call(input, &cx).await }
        })
    }
}

impl Tool {
    /// Creates a tool from an async closure. The closure gets the context by value; cloning it is
    /// cheap.
    pub fn function<I, O, F, Fut>(name: &str, description: &str, run: F) -> Self
    where
        I: DeserializeOwned + JsonSchema + Send,
        O: Serialize,
        F: Fn(I, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, ToolError>> + Send,
    {
        let run = Arc::new(run);
        Self::erased(name, description, Schema::of::<I>(), move |input, cx| {
            let (run, input) = (Arc::clone(&run), input.clone());
            Box::pin(async move {
                let input = input.to_typed::<I>().map_err(|error| {
                    ToolError::new(format!("invalid arguments: {}", excerpt_of(error, MAX_QUOTED)))
                })?;
                as_result(&run(input, cx).await?)
            })
        })
    }

    /// Creates a tool whose schema is only known at run time. The arguments are validated against
    /// the schema before `run` is called.
    pub fn dynamic<F, Fut>(name: &str, description: &str, input_schema: Value, run: F) -> Self
    where
        F: Fn(Value, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, ToolError>> + Send,
    {
        let run = Arc::new(run);
        Self::erased(name, description, Schema::from_value(input_schema), move |input, cx| {
            let (run, input) = (Arc::clone(&run), input.to_value());
            Box::pin(async move { as_result(&run(input, cx).await?) })
        })
    }

    pub(super) fn erased<F>(name: &str, description: &str, input: Result<Schema>, run: F) -> Self
    where
        F: Fn(&Json, ToolContext) -> BoxFuture<'static, Result<Json, ToolError>>
            + Send
            + Sync
            + 'static,
    {
        Self {
            name: name.into(),
            description: description.trim().into(),
            // An invalid schema is reported when the agent is built, with all other problems.
            input: input.map_err(Arc::new),
            output: None,
            run: Arc::new(run),
            finish: false,
            transform: None,
            strict: false,
            timeout: None,
            retry: None,
            effect: None,
            answer_options: AnswerOptions::default(),
            reconcile: None,
        }
    }

    /// Replaces the name, for instance to use one function twice.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    /// Replaces the description.
    #[must_use]
    pub fn described(mut self, description: &str) -> Self {
        self.description = description.trim().into();
        self
    }

    /// Validates results against the schema of `T`. A result that does not fit is a failure.
    #[must_use]
    pub fn output_schema<T: JsonSchema>(mut self) -> Self {
        self.output = Some(Schema::of::<T>().map_err(Arc::new));
        self
    }

    /// Makes this a finish tool: its result is the agent's output. An agent with a finish tool has
    /// no `__finish__`.
    #[must_use]
    pub fn finish_with(mut self) -> Self {
        self.finish = true;
        self
    }

    /// Makes this a finish tool whose result is transformed into the agent's output. The transform
    /// should be pure and simple: if it fails, the run fails.
    #[must_use]
    pub fn finish_with_transform<R, O>(
        mut self,
        transform: impl Fn(R) -> Result<O, ToolError> + Send + Sync + 'static,
    ) -> Self
    where
        R: DeserializeOwned,
        O: Serialize,
    {
        self.finish = true;
        self.transform = Some(Arc::new(move |result| {
            Ok(serde_json::to_value(transform(serde_json::from_value(result)?)?)?)
        }));
        self
    }

    /// Asks the provider to constrain the arguments to the schema. This is a hint: models without
    /// that feature get the request without it.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// Sets the timeout of one attempt. Default: the agent's `tool_timeout`.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Retries the tool after [retryable](ToolError::retryable) failures and after timeouts.
    /// Default: one attempt.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = Some(policy);
        self
    }

    /// Sets the effect class. Default: [`EffectClass::Idempotent`], and [`EffectClass::AtMostOnce`]
    /// for a tool that requires approval.
    #[must_use]
    pub fn effect(mut self, effect: EffectClass) -> Self {
        self.effect = Some(effect);
        self
    }

    /// Sets a function that determines the outcome of a call that a crash interrupted. Used for
    /// [`EffectClass::AtMostOnce`].
    #[must_use]
    pub fn reconcile<F, Fut>(mut self, reconcile: F) -> Self
    where
        F: Fn(Value, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ReconcileOutcome> + Send + 'static,
    {
        self.reconcile = Some(Arc::new(move |input, cx| Box::pin(reconcile(input, cx))));
        self
    }

    /// Returns the name under which models call the tool.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the effect class.
    #[must_use]
    pub fn effect_class(&self) -> EffectClass {
        let gated = self.answer_options.approval.is_some();
        self.effect.unwrap_or(if gated { EffectClass::AtMostOnce } else { EffectClass::default() })
    }

    /// Returns `true` if the tool is a finish tool.
    #[must_use]
    pub fn is_finish(&self) -> bool {
        self.finish
    }

    /// Returns the tool's own timeout of one attempt, if it has one.
    #[must_use]
    pub fn own_timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Returns the retry policy, if the tool has one.
    #[must_use]
    pub fn retry_policy(&self) -> Option<&RetryPolicy> {
        self.retry.as_ref()
    }

    /// Returns the function that determines the outcome of an interrupted call.
    #[must_use]
    pub fn reconciler(&self) -> Option<&Reconcile> {
        self.reconcile.as_ref()
    }

    /// Validates arguments against the input schema.
    ///
    /// # Errors
    /// Returns the violations, one sentence each, for the model.
    pub fn validate(&self, input: &Value) -> Result<(), Vec<String>> {
        match &self.input {
            Ok(schema) => schema.validate(input),
            Err(error) => Err(vec![error.to_string()]),
        }
    }

    /// Runs the tool once; for runtimes. The arguments must have been [validated](Self::validate).
    ///
    /// # Cancel safety
    /// Dropping the future stops the tool at its next await point.
    #[must_use]
    pub fn invoke(
        &self,
        input: &Json,
        cx: ToolContext,
    ) -> BoxFuture<'static, Result<Json, ToolError>> {
        (self.run)(input, cx)
    }

    /// Returns every problem of the definition, one sentence each.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let name = &self.name;
        if super::is_reserved(name) {
            problems.push(format!("the tool name `{name}` is reserved"));
        }
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
            problems.push(format!(
                "the tool name `{name}` must be 1 to 64 letters, digits, `_` or `-`"
            ));
        }
        if self.description.is_empty() {
            problems.push(format!(
                "tool `{name}` needs a description: the model uses it to decide when to call it"
            ));
        }
        let schemas = std::iter::once(&self.input).chain(&self.output);
        problems.extend(schemas.filter_map(|schema| {
            schema.as_ref().err().map(|error| format!("tool `{name}`: {}", error.message()))
        }));
        if let Ok(input) = &self.input
            && !input.may_be_object()
        {
            problems.push(format!(
                "tool `{name}`: its input must be a JSON object, such as a struct with a field for each argument"
            ));
        }
        if self.reconcile.is_some() && self.effect_class() != EffectClass::AtMostOnce {
            problems.push(format!("tool `{name}`: `reconcile` needs `EffectClass::AtMostOnce`"));
        }
        if self.retry.is_some() && self.effect_class() == EffectClass::AtMostOnce {
            problems.push(format!("tool `{name}`: an at-most-once tool cannot have `retry`"));
        }
        problems.extend(self.answer_option_problems());
        problems
    }

    pub(crate) fn input(&self) -> Result<&Schema> {
        self.input.as_ref().map_err(|error| Error::new(ErrorCode::ToolInvalid, error.to_string()))
    }
}

fn as_result<T: Serialize>(output: &T) -> Result<Json, ToolError> {
    Json::from_serialize(output)
        .map_err(|error| ToolError::new(format!("the result is not JSON: {error}")))
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool")
            .field("name", &self.name)
            .field("finish", &self.finish)
            .field("effect", &self.effect_class())
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
