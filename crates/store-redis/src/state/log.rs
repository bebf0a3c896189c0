//! Reading and verification of logs.

use bytes::Bytes;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::Result;
use helix_agents_core::id::{AppendId, RunId, SessionId};
use helix_agents_core::store::{Position, StoredAppend};

use super::head::{self, Part};
use crate::error::{corrupt, not_found};
use crate::reply::Reply;
use crate::{Inner, script};

/// The approximate number of bytes that one script reads. The server is blocked while a script
/// runs.
const BUDGET: &[u8] = b"4194304";

/// Appends that were read from a log.
#[derive(Debug)]
pub(super) struct Read {
    /// The end of the append that contains the last event before them.
    pub(super) before: Position,
    appends: Vec<StoredAppend>,
    /// `true` if there may be more appends.
    more: bool,
}

impl Read {
    fn new(mut reply: Reply) -> Result<Self> {
        let before = Position { version: reply.number()?, append: AppendId::from(reply.text()?) };
        let _at: Bytes = reply.bytes()?;
        let more = reply.text()? == "1";
        let mut appends = Vec::new();
        while !reply.is_empty() {
            appends.push(StoredAppend {
                first: reply.number()?,
                count: reply.number()?,
                id: AppendId::from(reply.text()?),
                run: reply.text_or_none()?.map(RunId::from),
                schema: reply.number()?,
                at: Timestamp(reply.number()?),
                body: reply.bytes()?,
            });
        }
        Ok(Self { before, appends, more })
    }

    /// Returns the end of the last append.
    fn end(&self) -> Position {
        self.appends.last().map_or_else(|| self.before.clone(), StoredAppend::position)
    }

    /// Returns `true` if each append begins where the previous one ends.
    fn is_gapless(&self) -> bool {
        let mut version = self.before.version;
        self.appends.iter().all(|append| {
            let follows = append.first == version + 1 && append.count > 0;
            version = append.first.saturating_add(u64::from(append.count)).saturating_sub(1);
            follows
        })
    }
}

/// The result of one script.
enum Page {
    Own { generation: String, end: Position, read: Read },
    Shared { generation: String, base: Vec<Part> },
}

impl Inner {
    /// Returns the appends after a version. Appends never change, so it is safe to read them in
    /// several steps.
    pub(super) async fn read(
        &self,
        session: &SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredAppend>> {
        if session.check().is_err() {
            return Err(not_found(session));
        }
        let (mut appends, mut version, mut first_generation) = (Vec::new(), after, None);
        loop {
            let taken = u32::try_from(appends.len()).unwrap_or(u32::MAX);
            let page = self.read_page(session, version, limit.saturating_sub(taken)).await?;
            let (Page::Own { generation, .. } | Page::Shared { generation, .. }) = &page;
            // The session was deleted and another one was created.
            if first_generation.get_or_insert_with(|| generation.clone()) != generation {
                return Err(not_found(session));
            }
            let (read, is_end) = match page {
                Page::Own { end, read, .. } => {
                    let is_end = !read.more || read.end() == end;
                    if is_end && limit > 0 && version < end.version && read.end() != end {
                        return Err(corrupt(session, "the log does not match its head"));
                    }
                    (read, is_end)
                }
                Page::Shared { base, .. } => {
                    let left = limit.saturating_sub(taken);
                    (self.read_base(session, &base, version, left).await?, false)
                }
            };
            if !read.is_gapless() {
                return Err(corrupt(session, "appends of the log are missing or overlap"));
            }
            let is_stuck = read.appends.is_empty();
            version = read.end().version;
            appends.extend(read.appends);
            let is_full = appends.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
            if is_end || is_full || is_stuck {
                return Ok(appends);
            }
        }
    }

    async fn read_page(&self, session: &SessionId, after: u64, limit: u32) -> Result<Page> {
        let keys = self.keys.of(session);
        let (keys, after, limit) =
            ([keys.head(), keys.log()], after.to_string(), limit.to_string());
        let args = [after.as_bytes(), limit.as_bytes(), BUDGET];
        let mut reply = self.server.eval(&script::READ, &keys, &args).await?;
        match &*reply.text()? {
            "own" => {
                let generation = reply.text()?;
                let end =
                    Position { version: reply.number()?, append: AppendId::from(reply.text()?) };
                Ok(Page::Own { generation, end, read: Read::new(reply)? })
            }
            "shared" => {
                let generation = reply.text()?;
                Ok(Page::Shared { generation, base: head::base(session, &reply.text()?)? })
            }
            _ => Err(not_found(session)),
        }
    }

    /// Reads appends of the base of a forked session.
    async fn read_base(
        &self,
        session: &SessionId,
        base: &[Part],
        after: u64,
        limit: u32,
    ) -> Result<Read> {
        let part = base.iter().find(|part| after < part.version);
        let part = part.ok_or_else(|| corrupt(session, "the log of a fork has a gap"))?;
        let read = self.read_part(part, after, limit).await?;
        let end = Position { version: part.version, append: part.append.clone() };
        if !read.more && read.end() != end && limit > 0 {
            let message = "the log that the session was forked from has lost shared appends";
            return Err(corrupt(session, message).with_context("from", &part.session));
        }
        Ok(read)
    }

    /// Reads appends of a shared part.
    pub(super) async fn read_part(&self, part: &Part, after: u64, limit: u32) -> Result<Read> {
        let keys = self.keys.of(&part.session);
        let keys = [keys.head(), keys.log(), keys.kept_log(&part.generation)];
        let (after, end) = (after.to_string(), part.version.to_string());
        let limit = limit.to_string();
        let args = [
            part.generation.as_bytes(),
            after.as_bytes(),
            end.as_bytes(),
            limit.as_bytes(),
            BUDGET,
        ];
        Read::new(self.server.eval(&script::READ_SHARED, &keys, &args).await?)
    }
}
