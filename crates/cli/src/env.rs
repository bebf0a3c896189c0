//! The environment variables that `helix` reads itself, all in one place. Those of model providers
//! are in `helix_agents::providers::env`.

use std::ffi::OsString;

/// One environment variable.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EnvVar {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it is for, in the words of `--help`.
    pub(crate) doc: &'static str,
    /// The first version that reads it.
    pub(crate) since: &'static str,
}

/// The database file.
pub(crate) const HELIX_DB: EnvVar = EnvVar {
    name: "HELIX_DB",
    doc: "The database file, if `--db` names none. Default: helix.db in the current folder.",
    since: "0.1.0",
};

/// The model.
pub(crate) const HELIX_MODEL: EnvVar = EnvVar {
    name: "HELIX_MODEL",
    doc: "The model as `provider:model`, if `--model` names none.",
    since: "0.1.0",
};

/// The log output.
pub(crate) const HELIX_LOG: EnvVar = EnvVar {
    name: "HELIX_LOG",
    doc: "What to log on standard error: `off`, `debug`, `helix_agents_llm=trace`. Default: \
          warnings, and with `--json` nothing.",
    since: "0.1.0",
};

/// The wish for plain output, <https://no-color.org>.
pub(crate) const NO_COLOR: EnvVar =
    EnvVar { name: "NO_COLOR", doc: "Set to anything: no colours.", since: "0.1.0" };

/// What kind of terminal it is.
pub(crate) const TERM: EnvVar = EnvVar {
    name: "TERM",
    doc: "`dumb`: no colours, no status line, no line editing.",
    since: "0.1.0",
};

/// Where programs keep their state.
pub(crate) const XDG_STATE_HOME: EnvVar = EnvVar {
    name: "XDG_STATE_HOME",
    doc: "The folder with helix/history, what was typed into `chat`. Default: ~/.local/state.",
    since: "0.1.0",
};

/// The user's folder.
pub(crate) const HOME: EnvVar =
    EnvVar { name: "HOME", doc: "Where that default is.", since: "0.1.0" };

/// Set by cargo for the programs that it runs.
pub(crate) const CARGO: EnvVar = EnvVar {
    name: "CARGO",
    doc: "Set by cargo: commands are then shown as `cargo helix …`.",
    since: "0.1.0",
};

/// All of them.
pub(crate) const ALL: &[EnvVar] =
    &[HELIX_DB, HELIX_MODEL, HELIX_LOG, NO_COLOR, TERM, XDG_STATE_HOME, HOME, CARGO];

impl EnvVar {
    /// Its value, if it is set and not empty.
    pub(crate) fn get(self) -> Option<OsString> {
        std::env::var_os(self.name).filter(|value| !value.is_empty())
    }

    /// Its value as text, likewise.
    pub(crate) fn text(self) -> Option<String> {
        self.get().map(|value| value.to_string_lossy().into_owned())
    }
}

/// How to call this program, as it was called.
pub(crate) fn program() -> &'static str {
    if CARGO.get().is_some() { "cargo helix" } else { "helix" }
}

/// All that are read: those of `helix` and those of the model providers.
pub(crate) fn everything() -> impl Iterator<Item = EnvVar> {
    let of_providers = helix_agents::providers::env::ALL.iter();
    let of_providers =
        of_providers.map(|it| EnvVar { name: it.name, doc: it.doc, since: it.since });
    ALL.iter().copied().chain(of_providers)
}

/// The section of `--help` on them.
pub(crate) fn help() -> String {
    let mut help = "Environment:".to_owned();
    for EnvVar { name, doc, since } in everything() {
        help.push_str(&format!("\n  {name:<15} {doc} Since {since}."));
    }
    help
}
