//! The Lua scripts. A script is atomic. The server identifies scripts by their digests, so several
//! versions of the store can use one server.

use std::sync::LazyLock;

/// A script and the digest by which the server knows it.
#[derive(Debug)]
pub(crate) struct Script {
    text: String,
    digest: String,
}

impl Script {
    fn new(parts: &[&str]) -> Self {
        let text = parts.concat();
        let digest = redis::Script::new(&text).get_hash().to_owned();
        Self { text, digest }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }
}

const COMMON: &str = include_str!("scripts/common.lua");
const FORGET: &str = include_str!("scripts/forget.lua");
const LOG: &str = include_str!("scripts/log.lua");
const STREAM: &str = include_str!("scripts/stream.lua");

macro_rules! scripts {
    ($($name:ident = [$($part:expr),+];)+) => {
        $(pub(crate) static $name: LazyLock<Script> = LazyLock::new(|| Script::new(&[$($part),+]));)+
    };
}

scripts! {
    APPEND = [COMMON, LOG, include_str!("scripts/append.lua")];
    CREATE = [COMMON, LOG, include_str!("scripts/create.lua")];
    DELETE = [COMMON, LOG, FORGET, include_str!("scripts/delete.lua")];
    HEAD = [COMMON, include_str!("scripts/head.lua")];
    HEAD_USAGE = [COMMON, include_str!("scripts/head_usage.lua")];
    INDEX = [COMMON, include_str!("scripts/index.lua")];
    INDEX_DROP = [COMMON, include_str!("scripts/index_drop.lua")];
    INDEX_RUN = [COMMON, include_str!("scripts/index_run.lua")];
    INDEX_PAGE = [include_str!("scripts/index_page.lua")];
    DUE = [COMMON, include_str!("scripts/due.lua")];
    READ = [COMMON, LOG, include_str!("scripts/read.lua")];
    READ_SHARED = [COMMON, LOG, include_str!("scripts/read_shared.lua")];
    RELEASE = [COMMON, LOG, include_str!("scripts/release.lua")];
    RENEW = [COMMON, include_str!("scripts/renew.lua")];
    SNAPSHOT_FIND = [include_str!("scripts/snapshot_find.lua")];
    SNAPSHOT_SAVE = [include_str!("scripts/snapshot_save.lua")];
    SHARE = [COMMON, LOG, include_str!("scripts/share.lua")];
    STREAM_FETCH = [COMMON, include_str!("scripts/stream_fetch.lua")];
    STREAM_FORGET = [FORGET, include_str!("scripts/stream_forget.lua")];
    STREAM_LOOK = [COMMON, STREAM, include_str!("scripts/stream_look.lua")];
    STREAM_RESET = [COMMON, include_str!("scripts/stream_reset.lua")];
    STREAM_WRITE = [COMMON, include_str!("scripts/stream_write.lua")];
}
