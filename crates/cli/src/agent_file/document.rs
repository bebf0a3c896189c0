//! A parsed and validated agent file.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use helix_agents::error::{Error, ErrorCode, Result};
use helix_agents::schema::Schema;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use toml::de::DeTable;

use super::check;
use super::config::AgentConfig;
use super::plan;
use super::source_map::SourceMap;
use crate::safe_read;

/// The maximum size in bytes of an agent file and of each file that it references.
const MAX_BYTES: u64 = 256 * 1024;

/// A parsed and validated agent file, with the contents of the files that it references. Only the
/// setup of its tools can still fail.
pub(crate) struct AgentFile {
    pub(super) path: PathBuf,
    pub(crate) folder: Dir,
    pub(super) config: AgentConfig,
    pub(super) prompt: String,
    pub(super) output: Option<Value>,
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
    /// [`ErrorCode::InputInvalid`] if the file cannot be read, [`ErrorCode::AgentInvalid`] with every
    /// problem found in it.
    pub(crate) fn read(path: &Path) -> Result<Self> {
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
        Self::parse(path, folder, &text)
    }

    /// Parses an agent file that is embedded in this program. Its folder is the current one and is not used.
    ///
    /// # Errors
    /// If the text is invalid, which is a bug.
    pub(crate) fn built_in(name: &str, text: &str) -> Result<Self> {
        let folder = Dir::open_ambient_dir(".", ambient_authority()).map_err(|error| {
            let message = format!("the current folder cannot be read: {error}");
            Error::new(ErrorCode::InputInvalid, message)
        })?;
        Self::parse(name.into(), folder, text)
    }

    /// Parses and validates the text of an agent file.
    ///
    /// # Errors
    /// [`ErrorCode::AgentInvalid`], with every problem found.
    pub(super) fn parse(path: PathBuf, folder: Dir, text: &str) -> Result<Self> {
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
        let mut referenced =
            ReferencedFiles { folder: &folder, source_map: &source_map, digest: Sha256::new() };
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
    pub(crate) fn name(&self) -> &str {
        &self.config.name
    }

    /// The model that the file names.
    pub(crate) fn model(&self) -> Option<&str> {
        self.config.model.as_deref()
    }

    /// Returns `true` if the agent has file tools.
    pub(crate) fn has_files(&self) -> bool {
        self.config.tools.files.is_some()
    }

    /// The absolute path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A SHA-256 digest of the agent file and of the files that it references.
    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }
}

/// Reads the files that an agent file references.
struct ReferencedFiles<'a> {
    folder: &'a Dir,
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
        let text = safe_read::read_text_below(self.folder, Path::new(name), MAX_BYTES);
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
