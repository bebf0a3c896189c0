//! The environment variables that `helix` reads itself. Those of models and providers are in
//! `helix_agents::providers::env`.

use helix_agents::providers;
pub(crate) use helix_agents::providers::env::{EnvVar, HELIX_MODEL};

/// The variable for the database.
pub(crate) const HELIX_DB: EnvVar = EnvVar {
    name: "HELIX_DB",
    doc: "The database without `--db`: a SQLite file, or a postgres://… or redis://… URL. \
          Default: helix.db in the current folder.",
    since: "0.1.0",
    is_secret: false,
};

/// The variable for the token of a server.
pub(crate) const HELIX_TOKEN: EnvVar = EnvVar {
    name: "HELIX_TOKEN",
    doc: "The token for `--server`, without `--token-file`.",
    since: "0.1.0",
    is_secret: true,
};

/// The variable for the log filter.
pub(crate) const HELIX_LOG: EnvVar = EnvVar {
    name: "HELIX_LOG",
    doc: "The log filter for standard error: `off`, `debug`, `helix_agents_llm=trace`. Default: \
          warnings; with `--json` nothing; with `--log` also starts and ends of runs.",
    since: "0.1.0",
    is_secret: false,
};

/// The variable that disables colours, <https://no-color.org>.
pub(crate) const NO_COLOR: EnvVar = EnvVar {
    name: "NO_COLOR",
    doc: "Any value disables colours.",
    since: "0.1.0",
    is_secret: false,
};

/// The variable for the type of the terminal.
pub(crate) const TERM: EnvVar = EnvVar {
    name: "TERM",
    doc: "`dumb`: no colours, no status line, no line editing.",
    since: "0.1.0",
    is_secret: false,
};

/// The variable for the folder of state files.
pub(crate) const XDG_STATE_HOME: EnvVar = EnvVar {
    name: "XDG_STATE_HOME",
    doc: "The folder of helix/history, the input history of `chat`. Default: ~/.local/state.",
    since: "0.1.0",
    is_secret: false,
};

/// The variable for the user's home folder.
pub(crate) const HOME: EnvVar = EnvVar {
    name: "HOME",
    doc: "The home folder, which is used if XDG_STATE_HOME is not set.",
    since: "0.1.0",
    is_secret: false,
};

/// The variable for the editor.
pub(crate) const VISUAL: EnvVar = EnvVar {
    name: "VISUAL",
    doc: "The editor for the arguments of a call (`approvals edit`, and `e` at the prompt).",
    since: "0.1.0",
    is_secret: false,
};

/// The variable for the editor if VISUAL is not set.
pub(crate) const EDITOR: EnvVar = EnvVar {
    name: "EDITOR",
    doc: "The editor if VISUAL is not set.",
    since: "0.1.0",
    is_secret: false,
};

/// The variable for the user's name.
pub(crate) const USER: EnvVar = EnvVar {
    name: "USER",
    doc: "The name that is recorded with an answer, unless `--by` is given.",
    since: "0.1.0",
    is_secret: false,
};

/// The variable that cargo sets for the programs that it runs.
pub(crate) const CARGO: EnvVar = EnvVar {
    name: "CARGO",
    doc: "Set by cargo: commands are shown as `cargo helix …`.",
    since: "0.1.0",
    is_secret: false,
};

/// All variables of this module.
pub(crate) const ALL: &[EnvVar] = &[
    HELIX_DB,
    HELIX_TOKEN,
    HELIX_LOG,
    NO_COLOR,
    TERM,
    XDG_STATE_HOME,
    HOME,
    VISUAL,
    EDITOR,
    USER,
    CARGO,
];

/// The command that runs this program, as the user called it.
pub(crate) fn program() -> &'static str {
    if CARGO.get().is_some() { "cargo helix" } else { "helix" }
}

/// All variables: those of `helix`, of models and of providers.
pub(crate) fn everything() -> impl Iterator<Item = EnvVar> {
    ALL.iter().chain(providers::env::ALL).copied()
}

/// The section of `--help` about environment variables.
pub(crate) fn help() -> String {
    let mut help = "Environment:".to_owned();
    for EnvVar { name, doc, since, .. } in everything() {
        help.push_str(&format!("\n  {name:<15} {doc} Since {since}."));
    }
    help
}
