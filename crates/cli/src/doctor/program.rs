//! The version and platform of this program.

use std::env::consts::{ARCH, OS};
use std::io;

use serde::Serialize;

use super::page::Page;

/// The program section of the report.
#[derive(Debug, Serialize)]
pub(super) struct Program {
    version: &'static str,
    os: &'static str,
    arch: &'static str,
    /// Whether this is a debug build, which is slow.
    debug: bool,
}

impl Program {
    pub(super) fn check() -> Self {
        let version = env!("CARGO_PKG_VERSION");
        Self { version, os: OS, arch: ARCH, debug: cfg!(debug_assertions) }
    }

    pub(super) fn show(&self, page: &Page<'_>) -> io::Result<()> {
        let build = if self.debug { "debug build: slower than a release build" } else { "release" };
        page.heading("Program")?;
        page.row("helix", &format!("{} on {} {}, {build}", self.version, self.os, self.arch))
    }
}
