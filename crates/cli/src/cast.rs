//! Who plays: an agent, the model behind it, and what a session has to remember so that any process
//! can go on with it.
//!
//! This is the one way from a command line or a recorded session to something that runs. `demo`,
//! `run`, `resume` and `chat` all take it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use helix_agents::agent::{AgentRegistry, AnyAgent};
use helix_agents::error::{Error, ErrorCode};
use helix_agents::executor::ResumeOptions;
use helix_agents::llm::LlmAdapter;
use helix_agents::planner::PlanningLlm;
use helix_agents::prelude::LocalRuntime;
use helix_agents::providers::ProviderRegistry;
use helix_agents::store::Head;

use crate::agent_file::AgentFile;
use crate::model::Model;
use crate::research::{self, Setting, researcher};
use crate::screen::{Screen, notice};
use crate::store::Store;

/// How long a session has to wait after its process died. Short, so that nobody gets bored between
/// `kill -9` and `resume`.
pub(crate) const LEASE: Duration = Duration::from_secs(3);

/// How much longer than a lease to wait for one.
const MARGIN: Duration = Duration::from_secs(2);

/// The tag with the model's name.
pub(crate) const MODEL: &str = "model";
/// The assistant's name, and its agent file.
const ASSISTANT: &str = "assistant";
const ASSISTANT_FILE: &str = include_str!("../data/assistant.toml");

/// The tag with the agent file's path.
const AGENT_FILE: &str = "agent_file";
/// The tag with the digest of the agent file as it was when the session began.
const AGENT_DIGEST: &str = "agent_digest";
/// The tag with the folder of the file tools, if a person named one.
const FILES: &str = "files";

/// An agent, its model, and the tags that lead back to both.
#[derive(Debug)]
pub(crate) struct Cast {
    agent: AnyAgent,
    model: Model,
    /// What answers: the model, or plans around it.
    adapter: Arc<dyn LlmAdapter>,
    tags: BTreeMap<String, String>,
    remarks: Vec<String>,
}

/// What a person wants to be other than an agent file or a recorded session says.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wishes<'a> {
    /// The model, as `provider:model`.
    pub(crate) model: Option<&'a str>,
    /// The agent file.
    pub(crate) agent: Option<&'a Path>,
    /// The folder that file tools see.
    pub(crate) files: Option<&'a Path>,
    /// Where the demo's tools leave their traces.
    pub(crate) trace: Option<&'a Path>,
}

impl Cast {
    /// The agent of `helix demo`.
    ///
    /// # Errors
    /// If the trace file cannot be written.
    pub(crate) fn of_demo(model: Model, pace: Duration, trace: Option<&Path>) -> Result<Self> {
        let setting = Setting::new(&model, pace, trace)?;
        Self::of_setting(model, &setting)
    }

    fn of_setting(model: Model, setting: &Setting) -> Result<Self> {
        let agent = researcher(model.name(), setting)?.erased();
        Ok(Self::new(agent, model, setting.tags()))
    }

    /// The agent of an agent file. Of the wishes, the model and the folder of the file tools count.
    ///
    /// # Errors
    /// If the file cannot be used, or its model is not to be had.
    pub(crate) async fn of_file(path: &Path, wishes: Wishes<'_>) -> Result<Self> {
        let file = AgentFile::read(path)?;
        check_files(&file, wishes)?;
        // What is wrong with the file is told before what is missing on the machine.
        file.agent(file.model().unwrap_or_default(), wishes.files)?;
        let model = Model::wanted(wishes.model.or(file.model())).await?.ok_or_else(no_model)?;
        Self::of_agent_file(&file, model, wishes.files)
    }

    /// The assistant of `helix chat`. Of the wishes, the model counts.
    ///
    /// # Errors
    /// If its model is not to be had.
    pub(crate) async fn of_assistant(wishes: Wishes<'_>) -> Result<Self> {
        Self::assistant(Model::wanted(wishes.model).await?.ok_or_else(no_model)?)
    }

    fn assistant(model: Model) -> Result<Self> {
        let file = AgentFile::built_in("assistant.toml", ASSISTANT_FILE)?;
        Ok(Self::new(file.agent(model.name(), None)?, model, BTreeMap::new()))
    }

    fn of_agent_file(file: &AgentFile, model: Model, files: Option<&Path>) -> Result<Self> {
        let files = files.map(std::path::absolute).transpose().context("no current folder")?;
        let agent = file.agent(model.name(), files.as_deref())?;
        let mut tags = BTreeMap::from([
            (AGENT_FILE.to_owned(), file.path().to_string_lossy().into_owned()),
            (AGENT_DIGEST.to_owned(), file.digest().to_owned()),
        ]);
        if let Some(files) = files {
            tags.insert(FILES.to_owned(), files.to_string_lossy().into_owned());
        }
        let plan = file.plan(&agent);
        let mut cast = Self::new(agent, model, tags);
        if let Some(plan) = plan {
            cast.adapter = Arc::new(PlanningLlm::around(cast.adapter).plan(&cast.agent, plan)?);
        }
        Ok(cast)
    }

    /// The agent of a recorded session, for another turn or to resume one: whatever it was begun
    /// with, but for the wishes.
    ///
    /// # Errors
    /// If this program did not begin the session, or its agent file or model is not to be had, or
    /// the file describes another agent by now.
    pub(crate) async fn of_session(head: &Head, wishes: Wishes<'_>) -> Result<Self> {
        let tags = &head.created.tags;
        let recorded = tags.get(AGENT_FILE).map(Path::new);
        let agent = &*head.created.agent;
        let model = tags.get(MODEL).filter(|_| is_ours(agent, tags));
        let model = wishes.model.unwrap_or(model.ok_or_else(|| not_ours(head))?);
        let Some(recorded) = recorded else {
            if wishes.agent.is_some() {
                let message = "the session belongs to an agent of this program, not to a file's";
                let error = Error::new(ErrorCode::AgentMismatch, message);
                return Err(error.with_context("agent", agent).into());
            }
            if wishes.files.is_some() {
                return Err(no_use("--files", "the session's agent has no file tools"));
            }
            if agent == ASSISTANT {
                check_trace(wishes)?;
                return Self::assistant(Model::again(model).await?);
            }
            let (model, setting) = Setting::of_tags(tags, model, wishes.trace).await?;
            return Self::of_setting(model, &setting);
        };
        check_trace(wishes)?;
        let path = wishes.agent.unwrap_or(recorded);
        let file = read_again(path, wishes.agent.is_none())?;
        check_files(&file, wishes)?;
        check_name(&file, path, head)?;
        let files = wishes.files.or_else(|| tags.get(FILES).map(Path::new));
        let mut cast = Self::of_agent_file(&file, Model::again(model).await?, files)?;
        if path.canonicalize().is_ok_and(|path| path != recorded) {
            let recorded = recorded.display();
            cast.remarks.push(format!("The session was begun from the agent file {recorded}."));
        }
        if tags.get(AGENT_DIGEST).is_some_and(|digest| digest != file.digest()) {
            cast.remarks.push(format!(
                "The agent file {} is not as it was when the session began.",
                path.display()
            ));
        }
        Ok(cast)
    }

    /// The agent of a recorded session, for what asks no model, so that none has to be there.
    ///
    /// # Errors
    /// As [`of_session`](Self::of_session), but for the model.
    pub(crate) fn agent_of_session(head: &Head, agent: Option<&Path>) -> Result<AnyAgent> {
        let tags = &head.created.tags;
        let model = tags.get(MODEL).map_or("", String::as_str);
        let recorded = tags.get(AGENT_FILE).map(Path::new);
        let Some(path) = agent.or(recorded) else {
            return match &*head.created.agent {
                research::NAME if is_demo(research::NAME, tags) => {
                    let setting = Setting::new(&Model::script(Duration::ZERO), LEASE, None)?;
                    Ok(researcher(model, &setting)?.erased())
                }
                ASSISTANT if tags.contains_key(MODEL) => {
                    Ok(AgentFile::built_in("assistant.toml", ASSISTANT_FILE)?.agent(model, None)?)
                }
                _ => Err(not_ours(head).into()),
            };
        };
        let file = read_again(path, agent.is_none())?;
        check_name(&file, path, head)?;
        Ok(file.agent(model, tags.get(FILES).map(Path::new))?)
    }

    fn new(agent: AnyAgent, model: Model, mut tags: BTreeMap<String, String>) -> Self {
        tags.insert(MODEL.to_owned(), model.name().to_owned());
        let adapter = model.adapter();
        Self { agent, model, adapter, tags, remarks: Vec::new() }
    }

    /// The agent.
    pub(crate) fn agent(&self) -> &AnyAgent {
        &self.agent
    }

    /// The model.
    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    /// The tags of a new session, by which [`of_session`](Self::of_session) finds everything again.
    pub(crate) fn tags(&self) -> BTreeMap<String, String> {
        self.tags.clone()
    }

    /// Tells people what they should know before it begins.
    pub(crate) fn tell_remarks(&self, screen: &Screen) {
        if !screen.is_json() {
            self.remarks.iter().for_each(|remark| notice(remark));
        }
    }

    /// What carries out the runs.
    ///
    /// # Errors
    /// If it contradicts itself, which is a bug.
    pub(crate) fn runtime(&self, store: Store) -> Result<LocalRuntime> {
        let builder = LocalRuntime::builder().store(store).llm_adapter(Arc::clone(&self.adapter));
        Ok(builder.lease(LEASE).build()?)
    }
}

/// Whether a session is one of `helix demo`: no file or other program describes its agent.
pub(crate) fn is_demo(agent: &str, tags: &BTreeMap<String, String>) -> bool {
    agent == research::NAME && tags.contains_key(MODEL) && !tags.contains_key(AGENT_FILE)
}

/// Whether this program can go on with a session: it began it, or something like it.
pub(crate) fn is_ours(agent: &str, tags: &BTreeMap<String, String>) -> bool {
    let has_agent = tags.contains_key(AGENT_FILE) || [research::NAME, ASSISTANT].contains(&agent);
    has_agent && tags.contains_key(MODEL)
}

/// A wait for the lease of a process that may have died.
pub(crate) fn patiently() -> ResumeOptions {
    ResumeOptions::default().wait(LEASE + MARGIN)
}

/// A runtime that looks at sessions and records what people say: no model answers in it.
///
/// # Errors
/// If it contradicts itself, which is a bug.
pub(crate) fn spectator(store: Store) -> Result<LocalRuntime> {
    let nobody = Arc::new(ProviderRegistry::new());
    Ok(LocalRuntime::builder().store(store).llm_adapter(nobody).build()?)
}

/// The same, for what has to know the agent of the session.
///
/// # Errors
/// Likewise.
pub(crate) fn executor_of(agent: AnyAgent, store: Store) -> Result<LocalRuntime> {
    let nobody = Arc::new(ProviderRegistry::new());
    let registry = AgentRegistry::default();
    let name = Arc::clone(agent.name());
    registry.register_factory(&name, move |_| Ok(Arc::clone(&agent)))?;
    let builder = LocalRuntime::builder().store(store).llm_adapter(nobody).registry(registry);
    Ok(builder.lease(LEASE).build()?)
}

/// The agent file of a session, of which the session has only the path.
fn read_again(path: &Path, is_recorded: bool) -> Result<AgentFile> {
    if is_recorded && !path.exists() {
        let message = "the agent file of the session is gone; put it back, or name its new place \
                       with --agent FILE";
        let error = Error::new(ErrorCode::InputInvalid, message);
        return Err(error.with_context("file", path.display()).into());
    }
    Ok(AgentFile::read(path)?)
}

/// A session stays with its agent.
fn check_name(file: &AgentFile, path: &Path, head: &Head) -> Result<()> {
    if file.name() == &*head.created.agent {
        return Ok(());
    }
    let message = format!(
        "the session belongs to the agent `{}`, and {} describes `{}`",
        head.created.agent,
        path.display(),
        file.name()
    );
    Err(Error::new(ErrorCode::AgentMismatch, message).into())
}

/// A folder is of use to an agent with file tools only, and is remembered as text.
fn check_files(file: &AgentFile, wishes: Wishes<'_>) -> Result<()> {
    match wishes.files {
        Some(_) if !file.has_files() => {
            Err(no_use("--files", "the agent file has no `[tools.files]`"))
        }
        Some(folder) if folder.to_str().is_none() => {
            Err(no_use("--files", "the folder's path is not in UTF-8"))
        }
        _ => Ok(()),
    }
}

fn check_trace(wishes: Wishes<'_>) -> Result<()> {
    match wishes.trace {
        Some(_) => Err(no_use("--trace", "only the tools of `helix demo` leave traces")),
        None => Ok(()),
    }
}

/// What is said in vain is not passed over.
fn no_use(option: &str, because: &str) -> anyhow::Error {
    Error::new(ErrorCode::InputInvalid, format!("`{option}` has no use here: {because}")).into()
}

/// That a session is not one of this program's.
pub(crate) fn not_ours(head: &Head) -> Error {
    let message = "the session was not begun from an agent file or by `helix demo` or \
                   `helix chat`; go on with it, or abort it, in the program that began it";
    Error::new(ErrorCode::AgentNotFound, message).with_context("agent", &head.created.agent)
}

fn no_model() -> Error {
    let message = "no model is configured, and no model server answers on this machine; name one \
                   with --model, as `model` in the agent file, in HELIX_MODEL or helix.toml, or set \
                   OPENAI_API_KEY or OPENAI_BASE_URL";
    Error::new(ErrorCode::ModelUnknown, message)
}
