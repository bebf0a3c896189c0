//! An agent file that was read and makes sense.

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
use super::form::Form;
use super::places::Places;
use super::plan;
use crate::regular;

/// The most bytes of an agent file, and of each file that it names.
const MOST_BYTES: u64 = 256 * 1024;

/// An agent file that was read: with the files that it names, and nothing left to find out but
/// whether its tools can be set up.
pub(crate) struct AgentFile {
    pub(super) path: PathBuf,
    pub(crate) folder: Dir,
    pub(super) form: Form,
    pub(super) prompt: String,
    pub(super) output: Option<Value>,
    /// It and the files that it names: what the agent must not be able to write.
    pub(crate) own: Vec<PathBuf>,
    pub(crate) places: Places,
    digest: String,
}

impl AgentFile {
    /// Reads an agent file, and the files that it names.
    ///
    /// # Errors
    /// [`ErrorCode::InputInvalid`] if the file cannot be read, [`ErrorCode::AgentInvalid`] with
    /// everything that is wrong in it.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let unreadable = |error: io::Error| {
            let message = format!("the agent file cannot be read: {error}");
            Error::new(ErrorCode::InputInvalid, message).with_context("file", path.display())
        };
        let text = regular::read_text(path, MOST_BYTES).map_err(unreadable)?;
        // The folder that the file lies in, not the one of a link to it.
        let path = path.canonicalize().map_err(unreadable)?;
        if path.to_str().is_none() {
            let message = "the agent file's path is not in UTF-8, so a session could not find the \
                           file again; rename it, or the folder that it is in";
            let error = Error::new(ErrorCode::InputInvalid, message);
            return Err(error.with_context("file", path.display()));
        }
        let folder = path.parent().unwrap_or(Path::new("/"));
        let folder = Dir::open_ambient_dir(folder, ambient_authority()).map_err(unreadable)?;
        Self::parse(path, folder, &text)
    }

    /// An agent file that is a part of this program. It sees no folder that matters.
    ///
    /// # Errors
    /// If it makes no sense, which is a bug.
    pub(crate) fn built_in(name: &str, text: &str) -> Result<Self> {
        let folder = Dir::open_ambient_dir(".", ambient_authority()).map_err(|error| {
            let message = format!("the current folder cannot be read: {error}");
            Error::new(ErrorCode::InputInvalid, message)
        })?;
        Self::parse(name.into(), folder, text)
    }

    /// Makes sense of the text of an agent file.
    ///
    /// # Errors
    /// [`ErrorCode::AgentInvalid`], with everything that is wrong.
    pub(super) fn parse(path: PathBuf, folder: Dir, text: &str) -> Result<Self> {
        let mut places = Places::of_file(&path, text);
        let table = DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |it| it.start);
            let message = format!("this is not TOML: {}", error.message().replace('\n', "; "));
            places.error(vec![Places::problem_at(at, message)])
        })?;
        let (members, problems) = places.take_in(table.get_ref());
        if !problems.is_empty() {
            return Err(places.error(problems));
        }
        let document = Value::Object(members);
        let problems = check::problems(&document, &places)?;
        if !problems.is_empty() {
            return Err(places.error(problems));
        }
        let form: Form = serde_json::from_value(document)
            .map_err(|error| places.error(vec![places.problem("", error.to_string())]))?;
        let problems = plan::problems(&form, &places);
        if !problems.is_empty() {
            return Err(places.error(problems));
        }
        let mut beside = Beside { folder: &folder, places: &places, digest: Sha256::new() };
        beside.digest.update(text);
        let prompt = beside.prompt(&form)?;
        let output = beside.output(&form)?;
        let digest = beside.digest.finalize();
        let digest = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let named = form.prompt_file.iter();
        let named = named.chain(form.output.iter().filter_map(|it| it.schema_file.as_ref()));
        let own = std::iter::once(path.clone()).chain(named.map(|name| path.with_file_name(name)));
        let own = own.collect();
        Ok(Self { path, folder, form, prompt, output, own, places, digest })
    }

    /// The agent's name.
    pub(crate) fn name(&self) -> &str {
        &self.form.name
    }

    /// The model that it names.
    pub(crate) fn model(&self) -> Option<&str> {
        self.form.model.as_deref()
    }

    /// Whether its agent sees files.
    pub(crate) fn has_files(&self) -> bool {
        self.form.tools.files.is_some()
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A digest of it and of the files that it names.
    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }
}

/// Reads the files that an agent file names.
struct Beside<'a> {
    folder: &'a Dir,
    places: &'a Places,
    digest: Sha256,
}

impl Beside<'_> {
    fn prompt(&mut self, form: &Form) -> Result<String> {
        match (&form.prompt, &form.prompt_file) {
            (Some(prompt), _) => Ok(prompt.clone()),
            (None, Some(name)) => self.read("/prompt_file", name),
            (None, None) => Err(self.error("", "there is no prompt".to_owned())),
        }
    }

    fn output(&mut self, form: &Form) -> Result<Option<Value>> {
        let Some(form) = &form.output else { return Ok(None) };
        let (pointer, schema) = match (&form.schema, &form.schema_file) {
            (Some(schema), _) => ("/output/schema", Value::Object(schema.clone())),
            (None, Some(name)) => {
                let pointer = "/output/schema_file";
                let schema = serde_json::from_str(&self.read(pointer, name)?);
                let not_json =
                    |error| self.error(pointer, format!("`{name}` is not JSON: {error}"));
                (pointer, schema.map_err(not_json)?)
            }
            (None, None) => return Err(self.error("/output", "there is no schema".to_owned())),
        };
        if !schema.is_object() {
            return Err(self.error(pointer, "the schema of the output must be a table".to_owned()));
        }
        match Schema::from_value(schema.clone()) {
            Ok(_) => Ok(Some(schema)),
            Err(error) => Err(self.error(pointer, error.message().to_owned())),
        }
    }

    fn read(&mut self, pointer: &str, name: &str) -> Result<String> {
        let text = regular::read_text_below(self.folder, Path::new(name), MOST_BYTES);
        let text = text.map_err(|error| {
            let message = format!(
                "`{name}` cannot be read: {error} (it has to be a file in the agent file's folder \
                 or below it)"
            );
            self.error(pointer, message)
        })?;
        // With the length, so that text cannot move from one file to another unseen.
        self.digest.update(text.len().to_be_bytes());
        self.digest.update(&text);
        Ok(text)
    }

    fn error(&self, pointer: &str, message: String) -> Error {
        self.places.error(vec![self.places.problem(pointer, message)])
    }
}

impl fmt::Debug for AgentFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentFile")
            .field("path", &self.path)
            .field("name", &self.form.name)
            .finish_non_exhaustive()
    }
}
