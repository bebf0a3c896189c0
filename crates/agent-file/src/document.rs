//! A parsed and validated agent file.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::schema::Schema;
use helix_agents_tools::safe_read;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use toml::de::DeTable;

use crate::check;
use crate::config::AgentConfig;
use crate::plan;
use crate::source_map::SourceMap;

/// The maximum size in bytes of an agent file and of each file that it references.
const MAX_BYTES: u64 = 256 * 1024;

/// A parsed and validated agent file, with the contents of the files that it references. Only the
/// setup of its tools can still fail.
///
/// # Examples
///
/// ```
/// use helix_agents_agent_file::{AgentFile, BuildOptions};
/// use helix_agents_runtime_local::TokioClock;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("reader.toml");
/// std::fs::write(&path, "name = 'reader'\nprompt = 'Read.'\ntools.files.root = '.'")?;
/// let file = AgentFile::read(&path)?;
/// let built = file.build(&BuildOptions::new(TokioClock::new()).model("openai:gpt-5-mini"))?;
/// assert!(built.agent().tool("read_file").is_some());
/// # Ok(())
/// # }
/// ```
pub struct AgentFile {
    pub(crate) path: PathBuf,
    /// The folder of the file; `None` if the text does not come from a file.
    folder: Option<Dir>,
    pub(crate) config: AgentConfig,
    pub(crate) prompt: String,
    pub(crate) output: Option<Value>,
    /// The paths of the agent file and of the files that it references. The agent must not be able to
    /// write them.
    pub(crate) own: Vec<PathBuf>,
    pub(crate) source_map: SourceMap,
    digest: String,
}

impl AgentFile {
    /// Reads an agent file and the files that it references.
    ///
    /// # Errors
    /// Returns [`ErrorCode::InputInvalid`] if the file cannot be read, [`ErrorCode::AgentInvalid`] with every problem
    /// found in it.
    pub fn read(path: &Path) -> Result<Self> {
        let unreadable = |error: io::Error| {
            let message = format!("the agent file cannot be read: {error}");
            Error::new(ErrorCode::InputInvalid, message).with_context("file", path.display())
        };
        let text = safe_read::read_text(path, MAX_BYTES).map_err(unreadable)?;
        // Resolves links: the folder that counts is the one of the file itself, not of a link to it.
        let path = path.canonicalize().map_err(unreadable)?;
        if path.to_str().is_none() {
            let message = "the agent file's path is not valid UTF-8, so a session could not record \
                           it; rename the file or its folder";
            let error = Error::new(ErrorCode::InputInvalid, message);
            return Err(error.with_context("file", path.display()));
        }
        let folder = path.parent().unwrap_or(Path::new("/"));
        let folder = Dir::open_ambient_dir(folder, ambient_authority()).map_err(unreadable)?;
        Self::parse_in(path, Some(folder), &text)
    }

    /// Parses an agent file that is not read from disk, such as one embedded in a program or received by a server.
    /// Errors contain `name` as the name of the file.
    ///
    /// The file has no folder, so it cannot reference other files, and its commands and file tools have no access
    /// unless [`BuildOptions::files`](crate::BuildOptions::files) names a folder.
    ///
    /// # Errors
    /// Returns [`ErrorCode::AgentInvalid`] with every problem found.
    pub fn parse(name: impl Into<PathBuf>, text: &str) -> Result<Self> {
        Self::parse_in(name.into(), None, text)
    }

    fn parse_in(path: PathBuf, folder: Option<Dir>, text: &str) -> Result<Self> {
        let mut source_map = SourceMap::of_file(&path, text);
        let table = DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let message =
                format!("the file is not valid TOML: {}", error.message().replace('\n', "; "));
            source_map.error(vec![SourceMap::problem_at(at, message)])
        })?;
        let (members, problems) = source_map.record(table.get_ref());
        if !problems.is_empty() {
            return Err(source_map.error(problems));
        }
        let document = Value::Object(members);
        let problems = check::problems(&document, &source_map)?;
        if !problems.is_empty() {
            return Err(source_map.error(problems));
        }
        let config: AgentConfig = serde_json::from_value(document)
            .map_err(|error| source_map.error(vec![source_map.problem("", error.to_string())]))?;
        let problems = plan::problems(&config, &source_map);
        if !problems.is_empty() {
            return Err(source_map.error(problems));
        }
        let mut referenced = ReferencedFiles {
            folder: folder.as_ref(),
            source_map: &source_map,
            digest: Sha256::new(),
        };
        referenced.digest.update(text);
        let prompt = referenced.prompt(&config)?;
        let output = referenced.output(&config)?;
        let digest = referenced.digest.finalize();
        let digest = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let named = config.prompt_file.iter();
        let named =
            named.chain(config.output.iter().filter_map(|output| output.schema_file.as_ref()));
        let own = std::iter::once(path.clone()).chain(named.map(|name| path.with_file_name(name)));
        let own = own.collect();
        Ok(Self { path, folder, config, prompt, output, own, source_map, digest })
    }

    /// The agent's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// The model that the file names.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.config.model.as_deref()
    }

    /// Returns `true` if the agent has file tools.
    #[must_use]
    pub fn has_file_tools(&self) -> bool {
        self.config.tools.files.is_some()
    }

    /// The absolute path of the file, or the name given to [`parse`](Self::parse).
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of the file.
    pub(crate) fn folder(&self) -> io::Result<&Dir> {
        self.folder.as_ref().ok_or_else(without_folder)
    }

    /// A SHA-256 digest of the agent file and of the files that it references.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

/// The error for access to the folder of a file that has none.
fn without_folder() -> io::Error {
    io::Error::other("the agent file was not read from a folder")
}

/// Reads the files that an agent file references.
struct ReferencedFiles<'a> {
    folder: Option<&'a Dir>,
    source_map: &'a SourceMap,
    digest: Sha256,
}

impl ReferencedFiles<'_> {
    fn prompt(&mut self, config: &AgentConfig) -> Result<String> {
        match (&config.prompt, &config.prompt_file) {
            (Some(prompt), _) => Ok(prompt.clone()),
            (None, Some(name)) => self.read("/prompt_file", name),
            (None, None) => Err(self.error("", "the prompt is missing".to_owned())),
        }
    }

    fn output(&mut self, config: &AgentConfig) -> Result<Option<Value>> {
        let Some(config) = &config.output else { return Ok(None) };
        let (pointer, schema) = match (&config.schema, &config.schema_file) {
            (Some(schema), _) => ("/output/schema", Value::Object(schema.clone())),
            (None, Some(name)) => {
                let pointer = "/output/schema_file";
                let schema = serde_json::from_str(&self.read(pointer, name)?);
                let not_json =
                    |error| self.error(pointer, format!("`{name}` is not JSON: {error}"));
                (pointer, schema.map_err(not_json)?)
            }
            (None, None) => return Err(self.error("/output", "the schema is missing".to_owned())),
        };
        if !schema.is_object() {
            return Err(self.error(pointer, "the output schema must be a table".to_owned()));
        }
        match Schema::from_value(schema.clone()) {
            Ok(_) => Ok(Some(schema)),
            Err(error) => Err(self.error(pointer, error.message().to_owned())),
        }
    }

    fn read(&mut self, pointer: &str, name: &str) -> Result<String> {
        let folder = self.folder.ok_or_else(without_folder);
        let text = folder
            .and_then(|folder| safe_read::read_text_below(folder, Path::new(name), MAX_BYTES));
        let text = text.map_err(|error| {
            let message = format!(
                "`{name}` cannot be read: {error} (it has to be a file in the agent file's folder \
                 or below it)"
            );
            self.error(pointer, message)
        })?;
        // Includes the length, so that moving text from one file to another changes the digest.
        self.digest.update(text.len().to_be_bytes());
        self.digest.update(&text);
        Ok(text)
    }

    fn error(&self, pointer: &str, message: String) -> Error {
        self.source_map.error(vec![self.source_map.problem(pointer, message)])
    }
}

impl fmt::Debug for AgentFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentFile")
            .field("path", &self.path)
            .field("name", &self.config.name)
            .finish_non_exhaustive()
    }
}
