//! The recorded cases.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;

use crate::frames;

/// A case: requests and replies in order.
pub(crate) struct Case {
    /// The path below the folder, without the extension.
    pub(crate) name: String,
    pub(crate) exchanges: Vec<Exchange>,
}

/// A request, its reply, and the meaning of the reply.
pub(crate) struct Exchange {
    pub(crate) provider: String,
    pub(crate) api: String,
    /// The body of the request, if it was recorded.
    pub(crate) request: Option<Value>,
    pub(crate) status: u16,
    pub(crate) reply: Reply,
    pub(crate) expected: Value,
}

/// The body of a recorded reply.
pub(crate) enum Reply {
    /// A JSON document.
    Document(Value),
    /// A stream of events, or a text that is not JSON.
    Text(String),
    /// A binary stream.
    Binary(Vec<u8>),
}

#[derive(Deserialize)]
struct File {
    provider: String,
    api: String,
    exchanges: Vec<FileExchange>,
}

#[derive(Deserialize)]
struct FileExchange {
    api: Option<String>,
    request: Option<Value>,
    response: FileResponse,
}

#[derive(Deserialize)]
struct FileResponse {
    status: u16,
    body: Option<Value>,
    text: Option<String>,
    base64: Option<String>,
    /// The frames of a binary stream, in samples that are written by hand.
    #[serde(default)]
    frames: Vec<FileFrame>,
}

#[derive(Deserialize)]
struct FileFrame {
    headers: BTreeMap<String, String>,
    payload: Value,
}

impl FileResponse {
    fn reply(self) -> Reply {
        match (self.body, self.text, self.base64) {
            (Some(body), ..) => Reply::Document(body),
            (None, Some(text), _) => Reply::Text(text),
            (None, None, Some(base64)) => {
                Reply::Binary(STANDARD.decode(base64).unwrap_or_default())
            }
            (None, None, None) => {
                Reply::Binary(self.frames.iter().flat_map(FileFrame::encode).collect())
            }
        }
    }
}

impl FileFrame {
    fn encode(&self) -> Vec<u8> {
        let headers = self.headers.iter().map(|(name, value)| (&**name, &**value));
        frames::encode(&frames::headers(headers), self.payload.to_string().as_bytes())
    }
}

#[derive(Deserialize)]
struct Expectations {
    exchanges: Vec<Value>,
}

impl Case {
    /// Loads all cases below a folder, in the order of their names.
    pub(crate) fn load_all(folder: &Path) -> Result<Vec<Self>> {
        let mut cases = Vec::new();
        for provider in subfolders(folder)? {
            for api in subfolders(&provider)? {
                for entry in std::fs::read_dir(&api)? {
                    let path = entry?.path();
                    let expectation = path.with_extension("expect.json");
                    if expectation.exists() {
                        let name = path.strip_prefix(folder)?.with_extension("");
                        let case = Self::load(&path, &expectation, name.display().to_string());
                        cases.push(case.with_context(|| path.display().to_string())?);
                    }
                }
            }
        }
        cases.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(cases)
    }

    fn load(path: &Path, expectation: &Path, name: String) -> Result<Self> {
        let file: File = serde_json::from_slice(&std::fs::read(path)?)?;
        let expectations: Expectations = serde_json::from_slice(&std::fs::read(expectation)?)?;
        let (replies, meanings) = (file.exchanges.len(), expectations.exchanges.len());
        ensure!(replies == meanings, "{replies} replies, but {meanings} expectations");
        let exchanges = file.exchanges.into_iter().zip(expectations.exchanges);
        let exchanges = exchanges.map(|(exchange, expected)| Exchange {
            provider: file.provider.clone(),
            api: exchange.api.unwrap_or_else(|| file.api.clone()),
            request: exchange.request.and_then(|request| request.get("body").cloned()),
            status: exchange.response.status,
            reply: exchange.response.reply(),
            expected,
        });
        Ok(Self { name, exchanges: exchanges.collect() })
    }
}

fn subfolders(folder: &Path) -> Result<Vec<std::path::PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    Ok(paths.into_iter().filter(|path| path.is_dir()).collect())
}
