//! The tool `read_file`.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use helix_agents_core::tool::{EffectClass, Tool, ToolContext, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{SandboxDir, refused, tidied};
use crate::safe_read;

/// The maximum length of a UTF-8 character in bytes, and so of what a cut can leave over.
const LONGEST_CHAR: usize = 4;

const DESCRIPTION: &str = "\
Read a text file. A long file is returned in parts: while the result has a `next_offset`, call again \
with it as `offset` to continue.";

/// The input of the tool.
#[derive(Debug, Deserialize, JsonSchema)]
struct Read {
    /// The file, relative to the agent's folder, as list_files shows it.
    #[schemars(length(min = 1, max = 1000))]
    path: String,
    /// The byte to start at. Omit it to start at the beginning.
    #[serde(default)]
    offset: u64,
    /// The maximum number of bytes to read. Omit it to read as many as allowed.
    #[schemars(range(min = 1))]
    limit: Option<usize>,
}

/// The output of the tool: a part of a file.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Part {
    pub(super) text: String,
    /// The size of the whole file.
    pub(super) bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_offset: Option<u64>,
}

/// Creates the tool.
pub(super) fn tool(sandbox: &SandboxDir) -> Tool {
    let sandbox = sandbox.clone();
    let run = move |input: Read, _: ToolContext| {
        let sandbox = sandbox.clone();
        async move {
            let work = move |sandbox: &SandboxDir| {
                let limit = input.limit.unwrap_or(usize::MAX).min(sandbox.max_bytes);
                read(sandbox, tidied(&input.path), input.offset, limit)
            };
            sandbox.do_with(work).await
        }
    };
    Tool::function("read_file", DESCRIPTION, run).effect(EffectClass::Pure)
}

pub(super) fn read(
    sandbox: &SandboxDir,
    path: &str,
    offset: u64,
    limit: usize,
) -> Result<Part, ToolError> {
    let refused = |error: io::Error| refused(path, &error);
    let mut file = safe_read::open_below(&sandbox.root, Path::new(path)).map_err(refused)?;
    let size = file.metadata().map_err(refused)?.len();
    if offset > size {
        return Err(ToolError::new(format!("`{path}` has {size} bytes; `offset` is beyond them")));
    }
    file.seek(SeekFrom::Start(offset)).map_err(refused)?;
    let mut bytes = Vec::new();
    // Reads at least one character, even if the limit is smaller than that.
    let most = limit.max(LONGEST_CHAR) as u64;
    file.take(most).read_to_end(&mut bytes).map_err(refused)?;
    let at_end = offset + bytes.len() as u64 >= size;
    let text = text_of(bytes, offset > 0, at_end).ok_or_else(|| {
        ToolError::new(format!("`{path}` is not a UTF-8 text file and cannot be read by this tool"))
    })?;
    let (skipped, text) = text;
    let next = offset + (skipped + text.len()) as u64;
    Ok(Part { text, bytes: size, next_offset: (next < size).then_some(next) })
}

/// The text without characters that are cut off at either end, and the number of bytes omitted at its
/// beginning. Returns `None` if the bytes are not text.
fn text_of(mut bytes: Vec<u8>, may_begin_within: bool, at_end: bool) -> Option<(usize, String)> {
    let is_middle = |byte: &&u8| may_begin_within && **byte & 0b1100_0000 == 0b1000_0000;
    let skipped = bytes.iter().take(LONGEST_CHAR - 1).take_while(is_middle).count();
    bytes.drain(..skipped);
    if bytes.contains(&0) {
        return None;
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let cut = error.utf8_error();
            if at_end || cut.error_len().is_some() {
                return None;
            }
            let mut bytes = error.into_bytes();
            bytes.truncate(cut.valid_up_to());
            String::from_utf8(bytes).ok()?
        }
    };
    Some((skipped, text))
}
