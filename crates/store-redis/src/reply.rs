//! Replies of scripts, which are flat lists of texts.

use std::vec::IntoIter;

use bytes::Bytes;
use redis::{FromRedisValue as _, Value};

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::{Error, ErrorCode, Result};

use crate::error::classify;

/// A reply that is read from its beginning.
#[derive(Debug)]
pub(crate) struct Reply {
    rest: IntoIter<Bytes>,
}

fn damaged() -> Error {
    Error::new(
        ErrorCode::StoreCorrupt,
        "data under this prefix is damaged, or another program wrote it",
    )
}

impl Reply {
    pub(crate) fn new(value: Value) -> Result<Self> {
        let texts = Vec::<Bytes>::from_redis_value(value);
        Ok(Self { rest: texts.map_err(|error| classify(error.into()))?.into_iter() })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.len() == 0
    }

    pub(crate) fn bytes(&mut self) -> Result<Bytes> {
        self.rest.next().ok_or_else(damaged)
    }

    pub(crate) fn text(&mut self) -> Result<String> {
        String::from_utf8(self.bytes()?.into()).map_err(|_| damaged())
    }

    pub(crate) fn number<T: std::str::FromStr>(&mut self) -> Result<T> {
        self.text()?.parse().map_err(|_| damaged())
    }

    pub(crate) fn time(&mut self) -> Result<Timestamp> {
        self.number().map(Timestamp)
    }

    /// Reads a time that may be missing.
    pub(crate) fn time_or_none(&mut self) -> Result<Option<Timestamp>> {
        let text = self.text()?;
        if text.is_empty() {
            return Ok(None);
        }
        text.parse().map(|at| Some(Timestamp(at))).map_err(|_| damaged())
    }

    /// Reads a text that may be missing, in the form that [`optional`] writes.
    pub(crate) fn text_or_none(&mut self) -> Result<Option<String>> {
        let text = self.text()?;
        if text.is_empty() {
            return Ok(None);
        }
        text.strip_prefix('=').map(|text| Some(text.to_owned())).ok_or_else(damaged)
    }
}

/// Encodes an optional text, so that a missing one differs from an empty one.
pub(crate) fn optional(text: Option<&str>) -> String {
    text.map_or_else(String::new, |text| format!("={text}"))
}
