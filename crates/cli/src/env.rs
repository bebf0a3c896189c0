//! The environment variables that `helix` reads itself, all in one place. The model's and those of
//! its providers are in `helix_agents::providers::env`.

use helix_agents::providers;
pub(crate) use helix_agents::providers::env::{EnvVar, HELIX_MODEL};

/// The database.
pub(crate) const HELIX_DB: EnvVar = EnvVar {
    name: "HELIX_DB",
    doc: "The database, if `--db` names none: a SQLite file, or postgres://… or redis://… for a server's. \
          Default: helix.db in the current folder.",
    since: "0.1.0",
    is_secret: false,
};

/// The log output.
pub(crate) const HELIX_LOG: EnvVar = EnvVar {
    name: "HELIX_LOG",
    doc: "What to log on standard error: `off`, `debug`, `helix_agents_llm=trace`. Default: \
          warnings, and with `--json` nothing.",
    since: "0.1.0",
    is_secret: false,
};

/// The wish for plain output, <https://no-color.org>.
pub(crate) const NO_COLOR: EnvVar = EnvVar {
    name: "NO_COLOR",
    doc: "Set to anything: no colours.",
    since: "0.1.0",
    is_secret: false,
};

/// What kind of terminal it is.
pub(crate) const TERM: EnvVar = EnvVar {
    name: "TERM",
    doc: "`dumb`: no colours, no status line, no line editing.",
    since: "0.1.0",
    is_secret: false,
};

/// Where programs keep their state.
pub(crate) const XDG_STATE_HOME: EnvVar = EnvVar {
    name: "XDG_STATE_HOME",
    doc: "The folder with helix/history, what was typed into `chat`. Default: ~/.local/state.",
    since: "0.1.0",
    is_secret: false,
};

/// The user's folder.
pub(crate) const HOME: EnvVar =
    EnvVar { name: "HOME", doc: "Where that default is.", since: "0.1.0", is_secret: false };

/// The editor.
pub(crate) const VISUAL: EnvVar = EnvVar {
    name: "VISUAL",
    doc: "The editor in which arguments are changed before a call is approved.",
    since: "0.1.0",
    is_secret: false,
};

/// The editor, second choice.
pub(crate) const EDITOR: EnvVar =
    EnvVar { name: "EDITOR", doc: "The same, without VISUAL.", since: "0.1.0", is_secret: false };

/// Who runs this.
pub(crate) const USER: EnvVar = EnvVar {
    name: "USER",
    doc: "Who is recorded with an answer, unless `--by` says so.",
    since: "0.1.0",
    is_secret: false,
};

/// Set by cargo for the programs that it runs.
pub(crate) const CARGO: EnvVar = EnvVar {
    name: "CARGO",
    doc: "Set by cargo: commands are then shown as `cargo helix …`.",
    since: "0.1.0",
    is_secret: false,
};

/// All of them.
pub(crate) const ALL: &[EnvVar] =
    &[HELIX_DB, HELIX_LOG, NO_COLOR, TERM, XDG_STATE_HOME, HOME, VISUAL, EDITOR, USER, CARGO];

/// How to call this program, as it was called.
pub(crate) fn program() -> &'static str {
    if CARGO.get().is_some() { "cargo helix" } else { "helix" }
}

/// All that are read: those of `helix`, the model and those of its providers.
pub(crate) fn everything() -> impl Iterator<Item = EnvVar> {
    ALL.iter().chain(providers::env::ALL).copied()
}

/// The section of `--help` on them.
pub(crate) fn help() -> String {
    let mut help = "Environment:".to_owned();
    for EnvVar { name, doc, since, .. } in everything() {
        help.push_str(&format!("\n  {name:<15} {doc} Since {since}."));
    }
    help
}
