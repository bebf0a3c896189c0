//! The agent of a session, its model, and the session tags from which any process can recreate both.
//!
//! `demo`, `run`, `resume` and `chat` all create their agent here, from a command line or from a recorded
//! session.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use helix_agents::AnyStore;
use helix_agents::RuntimeBuilder as _;
use helix_agents::agent::{AgentRegistry, AnyAgent};
use helix_agents::agent_file::{AgentFile, BuildOptions, BuiltAgent, RecordedFile};
use helix_agents::error::{Error, ErrorCode};
use helix_agents::executor::ResumeOptions;
use helix_agents::llm::LlmAdapter;
use helix_agents::prelude::LocalRuntime;
use helix_agents::providers::ProviderRegistry;
use helix_agents::runtime_local::TokioClock;
use helix_agents::store::Head;
use helix_agents::telemetry::Telemetry;
use helix_agents::terminal::{Screen, notice};
use helix_agents_demo::{ToolEnvironment, researcher};

use crate::demo_settings::DemoSettings;
use crate::live_export;
use crate::model::Model;
use crate::session_tags::{ASSISTANT, MODEL, is_demo, is_supported};

/// The lease duration: how long a session stays locked after its process crashed. It is short, so that
/// `resume` after `kill -9` does not take long.
pub(crate) const LEASE: Duration = Duration::from_secs(3);

/// The time to wait for a lease beyond the lease duration.
const MARGIN: Duration = Duration::from_secs(2);

/// The agent file of a conversation for which none is named.
const USUAL_FILE: &str = "agent.toml";

/// The agent file of the assistant.
const ASSISTANT_FILE: &str = include_str!("../data/assistant.toml");

/// An agent, its model, and the session tags that identify both.
#[derive(Debug)]
pub(crate) struct SessionAgent {
    agent: AnyAgent,
    model: Model,
    /// The adapter of the model, wrapped in a planner if the agent has one.
    adapter: Arc<dyn LlmAdapter>,
    tags: BTreeMap<String, String>,
    warnings: Vec<String>,
}

/// Command line options that override an agent file or a recorded session.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Overrides<'a> {
    /// The model, as `provider:model`.
    pub(crate) model: Option<&'a str>,
    /// The agent file.
    pub(crate) agent: Option<&'a Path>,
    /// The folder that the file tools access.
    pub(crate) files: Option<&'a Path>,
    /// The trace file of the demo's tools.
    pub(crate) trace: Option<&'a Path>,
}

impl Overrides<'_> {
    /// Returns `true` if nothing is overridden.
    pub(crate) fn is_empty(&self) -> bool {
        let Self { model, agent, files, trace } = self;
        model.is_none() && agent.is_none() && files.is_none() && trace.is_none()
    }
}

impl SessionAgent {
    /// Creates the agent of `helix demo`.
    ///
    /// # Errors
    /// Returns an error if the trace file cannot be written.
    pub(crate) fn of_demo(model: Model, pace: Duration, trace: Option<&Path>) -> Result<Self> {
        let settings = DemoSettings::new(&model, pace, trace)?;
        Self::of_setting(model, &settings)
    }

    fn of_setting(model: Model, settings: &DemoSettings) -> Result<Self> {
        let agent = researcher(model.name(), settings.environment())?.erased();
        Ok(Self::new(agent, model, settings.tags()))
    }

    /// Creates the agent of an agent file. It uses the overrides of the model and of the file tools' folder.
    ///
    /// # Errors
    /// Returns an error if the file is invalid, or its model is not available.
    pub(crate) async fn of_file(path: &Path, overrides: Overrides<'_>) -> Result<Self> {
        let file = AgentFile::read(path)?;
        check_files(&file, overrides)?;
        // Reports problems of the file before problems of the machine, such as a missing model.
        build(&file, file.model(), overrides.files)?;
        let model = Model::select(overrides.model.or(file.model())).await?.ok_or_else(no_model)?;
        Self::of_agent_file(&file, model, overrides.files)
    }

    /// Creates the agent of a new conversation: that of the agent file, else of the one in the current
    /// folder, else the assistant of `helix chat`. It uses the override of the model.
    ///
    /// # Errors
    /// Returns an error if the agent file is invalid, or the model is not available.
    pub(crate) async fn of_conversation(overrides: Overrides<'_>) -> Result<Self> {
        let usual = Path::new(USUAL_FILE);
        match overrides.agent.or_else(|| usual.exists().then_some(usual)) {
            Some(file) => Self::of_file(file, overrides).await,
            None => Self::assistant(Model::select(overrides.model).await?.ok_or_else(no_model)?),
        }
    }

    fn assistant(model: Model) -> Result<Self> {
        let agent = assistant(model.name())?;
        Ok(Self::new(agent, model, BTreeMap::new()))
    }

    fn of_agent_file(file: &AgentFile, model: Model, files: Option<&Path>) -> Result<Self> {
        let files = files
            .map(std::path::absolute)
            .transpose()
            .context("the current folder cannot be determined")?;
        let built = build(file, Some(model.name()), files.as_deref())?;
        let tags = file.session_tags(files.as_deref());
        let adapter = built.adapter(model.adapter())?;
        Ok(Self { adapter, ..Self::new(built.into(), model, tags) })
    }

    /// Recreates the agent of a recorded session for another turn or a resume, with the overrides applied.
    ///
    /// # Errors
    /// Returns an error if another program created the session, if its agent file or model is not available, or if the
    /// file now describes a different agent.
    pub(crate) async fn of_session(head: &Head, overrides: Overrides<'_>) -> Result<Self> {
        let tags = &head.created.tags;
        let agent = &*head.created.agent;
        let model = tags.get(MODEL).filter(|_| is_supported(agent, tags));
        let model = overrides.model.unwrap_or(model.ok_or_else(|| unsupported_session(head))?);
        let Some(recorded) = RecordedFile::of_tags(tags) else {
            if overrides.agent.is_some() {
                let message = "the session belongs to a built-in agent, not to an agent file";
                let error = Error::new(ErrorCode::AgentMismatch, message);
                return Err(error.with_context("agent", agent).into());
            }
            if overrides.files.is_some() {
                return Err(no_use("--files", "the session's agent has no file tools"));
            }
            if agent == ASSISTANT {
                check_trace(overrides)?;
                return Self::assistant(Model::recorded(model).await?);
            }
            let (model, settings) = DemoSettings::of_tags(tags, model, overrides.trace).await?;
            return Self::of_setting(model, &settings);
        };
        check_trace(overrides)?;
        let file = read_again(recorded, overrides.agent)?;
        check_files(&file, overrides)?;
        file.check_name(agent)?;
        let files = overrides.files.or(recorded.files());
        let mut session_agent = Self::of_agent_file(&file, Model::recorded(model).await?, files)?;
        session_agent.warnings = recorded.differences(&file);
        Ok(session_agent)
    }

    /// Recreates the agent of a recorded session without its model, for operations that need none.
    ///
    /// # Errors
    /// Returns the errors of [`of_session`](Self::of_session), except those about the model.
    pub(crate) fn agent_of_session(head: &Head, agent: Option<&Path>) -> Result<AnyAgent> {
        let tags = &head.created.tags;
        let model = tags.get(MODEL).map_or("", String::as_str);
        let (file, files) = match (RecordedFile::of_tags(tags), agent) {
            (Some(recorded), _) => (read_again(recorded, agent)?, recorded.files()),
            (None, Some(path)) => (AgentFile::read(path)?, None),
            (None, None) => return built_in(head, model),
        };
        file.check_name(&head.created.agent)?;
        Ok(build(&file, Some(model), files)?.into())
    }

    fn new(agent: AnyAgent, model: Model, mut tags: BTreeMap<String, String>) -> Self {
        tags.insert(MODEL.to_owned(), model.name().to_owned());
        let adapter = model.adapter();
        Self { agent, model, adapter, tags, warnings: Vec::new() }
    }

    /// Returns the agent.
    pub(crate) fn agent(&self) -> &AnyAgent {
        &self.agent
    }

    /// Returns the model.
    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    /// Returns the adapter of the model, with the planner of the agent if it has one.
    pub(crate) fn adapter(&self) -> Arc<dyn LlmAdapter> {
        Arc::clone(&self.adapter)
    }

    /// The tags of a new session, from which [`of_session`](Self::of_session) recreates the agent.
    pub(crate) fn tags(&self) -> BTreeMap<String, String> {
        self.tags.clone()
    }

    /// Shows the warnings to the user.
    pub(crate) fn show_warnings(&self, screen: &Screen) {
        if !screen.is_json() {
            self.warnings.iter().for_each(|remark| notice(remark));
        }
    }

    /// Creates the runtime that executes the runs and exports their spans.
    ///
    /// # Errors
    /// Returns an error if the configuration is inconsistent, which is a bug.
    pub(crate) fn runtime(
        &self,
        store: &AnyStore,
        telemetry: Option<&Telemetry>,
    ) -> Result<LocalRuntime> {
        let builder = LocalRuntime::builder().llm_adapter(Arc::clone(&self.adapter)).lease(LEASE);
        Ok(live_export::observed(builder, store, telemetry).build()?)
    }
}

/// Builds the agent of a file. `files` overrides the folder that the file tools access.
fn build(
    file: &AgentFile,
    model: Option<&str>,
    files: Option<&Path>,
) -> helix_agents::Result<BuiltAgent> {
    let mut options = BuildOptions::new(TokioClock::new());
    if let Some(model) = model {
        options = options.model(model);
    }
    if let Some(files) = files {
        options = options.files(files);
    }
    file.build(&options)
}

/// Builds the agent of a session without an agent file.
fn built_in(head: &Head, model: &str) -> Result<AnyAgent> {
    let (agent, tags) = (&*head.created.agent, &head.created.tags);
    if is_demo(agent, tags) {
        return Ok(researcher(model, &ToolEnvironment::default())?.erased());
    }
    if agent == ASSISTANT && tags.contains_key(MODEL) {
        return assistant(model);
    }
    Err(unsupported_session(head).into())
}

/// Builds the assistant of `helix chat`.
fn assistant(model: &str) -> Result<AnyAgent> {
    let file = AgentFile::parse("assistant.toml", ASSISTANT_FILE)?;
    Ok(build(&file, Some(model), None)?.into())
}

/// Resume options that wait for lease expiry, in case the owner has crashed.
pub(crate) fn wait_for_lease() -> ResumeOptions {
    ResumeOptions::default().wait(LEASE + MARGIN)
}

/// Creates a runtime that reads sessions and records answers. It has no model.
///
/// # Errors
/// Returns an error if the configuration is inconsistent, which is a bug.
pub(crate) fn runtime_without_model(store: AnyStore) -> Result<LocalRuntime, Error> {
    let no_models = Arc::new(ProviderRegistry::new());
    LocalRuntime::builder().store(store).llm_adapter(no_models).build()
}

/// Creates a runtime without a model for operations that need the agent of the session.
///
/// # Errors
/// Returns an error if the configuration is inconsistent, which is a bug.
pub(crate) fn runtime_for_agent(agent: AnyAgent, store: AnyStore) -> Result<LocalRuntime> {
    let no_models = Arc::new(ProviderRegistry::new());
    let registry = AgentRegistry::default();
    let name = Arc::clone(agent.name());
    registry.register_factory(&name, move |_| Ok(Arc::clone(&agent)))?;
    let builder = LocalRuntime::builder().store(store).llm_adapter(no_models).registry(registry);
    Ok(builder.lease(LEASE).build()?)
}

/// Reads the agent file of a session, or the one that replaces it. If it is missing, the error names the
/// option that passes another path.
fn read_again(recorded: RecordedFile<'_>, other: Option<&Path>) -> Result<AgentFile> {
    let read = recorded.read(other).map_err(|error| {
        if other.is_some() || recorded.path().exists() {
            return error;
        }
        let message = format!("{} with --agent FILE", error.message());
        Error::new(error.code(), message).with_context("file", recorded.path().display())
    });
    Ok(read?)
}

/// Checks that `--files` is used only with file tools, and that its path is UTF-8, so that a tag can
/// record it.
fn check_files(file: &AgentFile, overrides: Overrides<'_>) -> Result<()> {
    match overrides.files {
        Some(_) if !file.has_file_tools() => {
            Err(no_use("--files", "the agent file has no `[tools.files]`"))
        }
        Some(folder) if folder.to_str().is_none() => {
            Err(no_use("--files", "the folder's path is not valid UTF-8"))
        }
        _ => Ok(()),
    }
}

fn check_trace(overrides: Overrides<'_>) -> Result<()> {
    match overrides.trace {
        Some(_) => Err(no_use("--trace", "only the tools of `helix demo` write traces")),
        None => Ok(()),
    }
}

/// The error for an option that does not apply.
fn no_use(option: &str, because: &str) -> anyhow::Error {
    Error::new(ErrorCode::InputInvalid, format!("`{option}` does not apply: {because}")).into()
}

/// The error for a session that another program created.
pub(crate) fn unsupported_session(head: &Head) -> Error {
    let message = "another program created this session; resume or abort it with that program";
    Error::new(ErrorCode::AgentNotFound, message).with_context("agent", &head.created.agent)
}

fn no_model() -> Error {
    let message = "no model is configured, and no model server responds on this machine; choose one \
                   with --model, as `model` in the agent file, in HELIX_MODEL or helix.toml, or set \
                   OPENAI_API_KEY, ANTHROPIC_API_KEY or another provider's key";
    Error::new(ErrorCode::ModelUnknown, message)
}
