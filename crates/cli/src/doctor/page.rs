//! The report as people read it.

use std::io;

use helix_agents::guarantee::Guarantee;

use super::finding::Finding;
use crate::screen::{Screen, Style};
use crate::text::one_line;

/// The width of the names of rows.
const NAME: usize = 16;

/// Where lines end at the latest.
const WIDTH: usize = 100;

/// The report under way.
#[derive(Debug)]
pub(super) struct Page<'a> {
    screen: &'a Screen,
}

impl<'a> Page<'a> {
    pub(super) fn new(screen: &'a Screen) -> Self {
        Self { screen }
    }

    /// Begins a section.
    pub(super) fn heading(&self, title: &str) -> io::Result<()> {
        self.screen.line("")?;
        self.screen.line(self.screen.styled(Style::Bold, title))
    }

    /// A name and what is said of it, in as many lines as it takes.
    pub(super) fn row(&self, name: &str, value: &str) -> io::Result<()> {
        let mut name = name;
        for line in wrapped(value, WIDTH - NAME - 3) {
            self.screen.line(format!("  {name:<NAME$} {line}").trim_end())?;
            name = "";
        }
        Ok(())
    }

    /// Whether a promise holds, and why.
    pub(super) fn guarantee(&self, guarantee: &Guarantee) -> io::Result<()> {
        self.answer(guarantee.holds, guarantee.promise.statement(), &guarantee.reason)
    }

    /// Yes or no, to what, and why.
    pub(super) fn answer(&self, yes: bool, what: &str, why: &str) -> io::Result<()> {
        let (style, word) = if yes { (Style::Good, "yes") } else { (Style::Dim, "no ") };
        self.screen.line(format!("    {} {what}", self.screen.styled(style, word)))?;
        for line in wrapped(why, WIDTH - 8) {
            self.screen.line(format!("        {}", self.screen.styled(Style::Dim, line)))?;
        }
        Ok(())
    }

    /// What was found, and what to do about it.
    pub(super) fn finding(&self, finding: &Finding) -> io::Result<()> {
        for (index, line) in wrapped(&finding.message, WIDTH - 4).into_iter().enumerate() {
            let mark = if index == 0 { "-" } else { " " };
            self.screen.line(format!("  {mark} {line}"))?;
        }
        for line in wrapped(&format!("→ {}", finding.remedy), WIDTH - 6) {
            self.screen.line(format!("      {line}"))?;
        }
        Ok(())
    }

    /// The last line.
    pub(super) fn verdict(&self, style: Style, verdict: &str) -> io::Result<()> {
        self.screen.line("")?;
        self.screen.line(self.screen.styled(style, verdict))
    }
}

/// Lines of at most `width` characters, as far as words are not longer; at least one line. Nothing
/// but text is in them, whoever wrote it.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let word = &*one_line(word);
        let Some(line) = lines.last_mut() else { break };
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests;
