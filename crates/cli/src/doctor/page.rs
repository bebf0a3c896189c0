//! Prints the report as text.

use std::io;

use helix_agents::finding::Finding;
use helix_agents::guarantee::Guarantee;
use helix_agents::terminal::{Screen, Style};

use crate::text::one_line;

/// The width of the name column.
const NAME: usize = 16;

/// The maximum length of a line.
const WIDTH: usize = 100;

/// A printer for the report.
#[derive(Debug)]
pub(super) struct Page<'a> {
    screen: &'a Screen,
}

impl<'a> Page<'a> {
    pub(super) fn new(screen: &'a Screen) -> Self {
        Self { screen }
    }

    /// Prints the heading of a section.
    pub(super) fn heading(&self, title: &str) -> io::Result<()> {
        self.screen.line("")?;
        self.screen.line(self.screen.styled(Style::Bold, title))
    }

    /// Prints a name and a value, wrapped to several lines if needed.
    pub(super) fn row(&self, name: &str, value: &str) -> io::Result<()> {
        let mut name = name;
        for line in wrapped(value, WIDTH - NAME - 3) {
            self.screen.line(format!("  {name:<NAME$} {line}").trim_end())?;
            name = "";
        }
        Ok(())
    }

    /// Prints a guarantee: whether it holds, and why.
    pub(super) fn guarantee(&self, guarantee: &Guarantee) -> io::Result<()> {
        self.answer(guarantee.holds, guarantee.promise.statement(), &guarantee.reason)
    }

    /// Prints yes or no for a statement, and the reason.
    pub(super) fn answer(&self, yes: bool, statement: &str, reason: &str) -> io::Result<()> {
        let (style, word) = if yes { (Style::Good, "yes") } else { (Style::Dim, "no ") };
        self.screen.line(format!("    {} {statement}", self.screen.styled(style, word)))?;
        for line in wrapped(reason, WIDTH - 8) {
            self.screen.line(format!("        {}", self.screen.styled(Style::Dim, line)))?;
        }
        Ok(())
    }

    /// Prints a finding and its remedy.
    pub(super) fn finding(&self, finding: &Finding) -> io::Result<()> {
        for (index, line) in wrapped(&finding.message, WIDTH - 4).into_iter().enumerate() {
            let bullet = if index == 0 { "-" } else { " " };
            self.screen.line(format!("  {bullet} {line}"))?;
        }
        for line in wrapped(&format!("→ {}", finding.remedy), WIDTH - 6) {
            self.screen.line(format!("      {line}"))?;
        }
        Ok(())
    }

    /// Prints the last line, with the overall result.
    pub(super) fn verdict(&self, style: Style, verdict: &str) -> io::Result<()> {
        self.screen.line("")?;
        self.screen.line(self.screen.styled(style, verdict))
    }
}

/// Wraps a text to lines of at most `width` characters, unless a word is longer. Returns at least one
/// line. Control characters are escaped.
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
