//! `compat`: programs that depend on sqlx and on our default features resolve, and the SQLite store compiles with the
//! oldest driver that it accepts.
//!
//! Only one package of a program can link `sqlite3`, so the SQLite store and sqlx must agree on a version of
//! `libsqlite3-sys`. The store therefore accepts a range of rusqlite versions. The lock file of the workspace contains the
//! newest; this gate resolves programs that need older ones. In the deep tier it also compiles the store with the oldest.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result};

use crate::process;
use crate::test::tier::Tier;

/// The folder of the generated programs, below the target folder.
const FOLDER: &str = "target/compat";

/// A program that depends on our facade and on sqlx.
struct Program {
    name: &'static str,
    /// The value of `sqlx` in its manifest.
    sqlx: &'static str,
    /// `true` if this program selects the oldest rusqlite. Only with it is the store compiled.
    is_oldest: bool,
}

impl Program {
    const EMPTY: Self = Self { name: "", sqlx: "", is_oldest: false };
}

#[rustfmt::skip]
const PROGRAMS: &[Program] = &[
    Program { name: "sqlx-0.9",         sqlx: r#""0.9""#,                                                                  ..Program::EMPTY },
    Program { name: "sqlx-0.9-migrate", sqlx: r#"{ version = "0.9", default-features = false, features = ["migrate"] }"#,  ..Program::EMPTY },
    Program { name: "sqlx-0.9-macros",  sqlx: r#"{ version = "0.9", default-features = false, features = ["macros"] }"#,   ..Program::EMPTY },
    Program { name: "sqlx-0.9-sqlite",  sqlx: r#"{ version = "0.9", features = ["runtime-tokio", "sqlite"] }"#,            ..Program::EMPTY },
    Program { name: "sqlx-0.8",         sqlx: r#""0.8""#,                                                                  ..Program::EMPTY },
    Program { name: "sqlx-0.8-migrate", sqlx: r#"{ version = "0.8", default-features = false, features = ["migrate"] }"#,  ..Program::EMPTY },
    Program { name: "sqlx-0.8-macros",  sqlx: r#"{ version = "0.8", default-features = false, features = ["macros"] }"#,   ..Program::EMPTY },
    Program { name: "sqlx-0.8-sqlite",  sqlx: r#"{ version = "0.8", features = ["runtime-tokio", "sqlite"] }"#,            is_oldest: true },
];

/// Returns a complaint for every program that does not resolve, or does not compile if the tier compiles it.
pub(crate) fn complaints(tier: Tier) -> Result<Vec<String>> {
    let facade = fs::canonicalize("crates/helix-agents").context("the facade is missing")?;
    let mut complaints = Vec::new();
    for program in PROGRAMS {
        let manifest = write(program, &facade)?;
        if let Some(problem) = failure(&["metadata", "--format-version", "1"], &manifest)? {
            complaints.push(format!("{}: does not resolve\n{problem}", program.name));
        } else if program.is_oldest && tier == Tier::Deep {
            let check = ["check", "--package", "helix-agents-store-sqlite"];
            if let Some(problem) = failure(&check, &manifest)? {
                complaints.push(format!("{}: does not compile\n{problem}", program.name));
            }
        }
    }
    Ok(complaints)
}

/// Writes a program and returns the path of its manifest. Its lock file is that of the workspace, as in a program that
/// adds sqlx later.
fn write(program: &Program, facade: &Path) -> Result<PathBuf> {
    let folder = Path::new(FOLDER).join(program.name);
    let manifest = folder.join("Cargo.toml");
    let source = folder.join("src");
    fs::create_dir_all(&source)
        .and_then(|()| fs::write(source.join("lib.rs"), ""))
        .and_then(|()| fs::copy("Cargo.lock", folder.join("Cargo.lock")))
        .and_then(|_| fs::write(&manifest, text(program, facade)))
        .with_context(|| format!("could not write {}", folder.display()))?;
    Ok(manifest)
}

/// Returns the text of a program's manifest.
fn text(program: &Program, facade: &Path) -> String {
    format!(
        "[package]\nname = \"compat\"\nedition = \"2024\"\n\n\
         [dependencies]\nhelix-agents = {{ path = {facade:?} }}\nsqlx = {}\n\n[workspace]\n",
        program.sqlx
    )
}

/// Runs cargo on a manifest. Returns its messages if it fails.
fn failure(args: &[&str], manifest: &Path) -> Result<Option<String>> {
    let mut cargo = process::cargo(args);
    cargo.arg("--quiet").arg("--manifest-path").arg(manifest);
    // All programs have the same name, and at most one of them is compiled.
    cargo.env("CARGO_TARGET_DIR", Path::new(FOLDER).join("target"));
    let output = cargo.stdout(Stdio::null()).stderr(Stdio::piped()).output();
    let output = output.context("could not start cargo")?;
    let messages = String::from_utf8_lossy(&output.stderr);
    Ok((!output.status.success()).then(|| messages.trim().to_owned()))
}
