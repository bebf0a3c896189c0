//! `helix man`: manual pages, generated from the help texts.

use std::fs;
use std::io;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;
use clap::builder::Resettable;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use helix_agents::terminal::Screen;
use serde_json::json;

use crate::env;
use crate::exit::Exit;

/// The options of `helix man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write one page per command to this folder, which is created if missing. Default: print the page
    /// of `helix`.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Runs the command. `command` is the command line of the program.
pub(crate) fn run(args: &ManArgs, command: clap::Command, screen: &Screen) -> Result<Exit> {
    let root = built(command);
    let Some(dir) = &args.dir else {
        let page = page(&root)?;
        if screen.is_json() {
            screen.json(&json!({ "page": page }))?;
        } else {
            screen.text(&page)?;
        }
        return Ok(Exit::Completed);
    };
    fs::create_dir_all(dir)
        .with_context(|| format!("cannot create the folder {}", dir.display()))?;
    let mut written = Vec::new();
    for command in commands(&root) {
        let file = dir.join(Man::new(command.clone()).get_filename());
        fs::write(&file, page(&command)?)
            .with_context(|| format!("cannot write {}", file.display()))?;
        written.push(file);
    }
    if screen.is_json() {
        screen.json(&json!({ "written": written }))?;
        return Ok(Exit::Completed);
    }
    for file in written {
        screen.line(file.display())?;
    }
    Ok(Exit::Completed)
}

/// The root command, built so that subcommands have their full names.
fn built(command: clap::Command) -> clap::Command {
    let mut root = command.disable_help_subcommand(true);
    root.build();
    root
}

/// A command and all its visible subcommands.
fn commands(command: &clap::Command) -> Vec<clap::Command> {
    let mut all = vec![command.clone()];
    all.extend(
        command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()).flat_map(commands),
    );
    all
}

fn page(command: &clap::Command) -> io::Result<String> {
    // The text below the options in `--help` has its own sections in a page.
    let plain = command.clone().after_help(Resettable::Reset).after_long_help(Resettable::Reset);
    let mut page = Vec::new();
    Man::new(plain).manual("Helix Agents").render(&mut page)?;
    let mut page = String::from_utf8_lossy(&page).into_owned();
    if let Some(notes) = command.get_after_help() {
        page.push_str(&notes_of(&notes.to_string()).to_roff());
    }
    page.push_str(&common().to_roff());
    Ok(page)
}

/// The notes below the options in `--help`, with line breaks preserved.
fn notes_of(text: &str) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["NOTES"]);
    roff.control("nf", []);
    for line in text.lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
    roff
}

/// The sections that all pages have in common.
fn common() -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["ENVIRONMENT"]);
    for variable in env::everything() {
        roff.control("TP", []);
        roff.text([bold(variable.name)]);
        roff.text([roman(format!("{} Since {}.", variable.doc, variable.since))]);
    }
    roff.control("SH", ["EXIT STATUS"]);
    for (exit, meaning) in Exit::ALL {
        roff.control("TP", []);
        roff.text([bold((exit as u8).to_string())]);
        roff.text([roman(meaning)]);
    }
    roff
}
