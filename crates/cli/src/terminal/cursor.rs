//! Where the cursor is, and how the status line comes and goes without a trace in the text.

use unicode_width::UnicodeWidthChar as _;

use super::clean::RESET;

/// The cursor of a terminal that writes text, with a status line below it at times.
///
/// While the line is shown the cursor waits at its beginning: whoever is killed leaves it there,
/// and a terminal that was made narrower since takes all of it away with what is below.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    column: usize,
    /// How wide the terminal was when the text before it was written.
    width: usize,
    /// Whether the terminal was made wider or narrower in the middle of that text: some break the
    /// line anew and some do not, so nobody knows the column.
    lost: bool,
    shown: Option<Shown>,
}

#[derive(Debug, Clone, Copy)]
struct Shown {
    /// Where in the line above the text goes on.
    column: usize,
    /// How wide the terminal was.
    width: usize,
}

impl Cursor {
    /// Whether there is text before it in its line, which the status line is not.
    pub(super) fn is_in_line(&self) -> bool {
        self.column > 0
    }

    /// What to write to show the line, cut to the terminal's width.
    pub(super) fn show(&mut self, line: &str, style: &str, width: usize) -> String {
        let mut bytes = String::new();
        let shown = match self.shown {
            Some(shown) => shown,
            None if self.column == 0 => Shown { column: 0, width },
            None => {
                self.lose_if_resized(width);
                bytes.push('\n');
                Shown { column: self.column, width }
            }
        };
        self.shown = Some(shown);
        let reset = if style.is_empty() { "" } else { RESET };
        let line = fitting(line, width.saturating_sub(1));
        bytes.push_str(&format!("\r\u{1b}[J{style}{line}{reset}\r"));
        bytes
    }

    /// What to write to take it away, and to be where the text goes on.
    pub(super) fn hide(&mut self, width: usize) -> String {
        let Some(shown) = self.shown.take() else { return String::new() };
        let mut bytes = "\r\u{1b}[J".to_owned();
        let is_known = shown.width == width && shown.column < width;
        if shown.column > 0 && is_known && !self.lost {
            bytes.push_str(&format!("\u{1b}[A\u{1b}[{}G", shown.column + 1));
        } else {
            // The line above is full, or was broken anew: the text goes on below it.
            self.column = 0;
            self.lost = false;
        }
        bytes
    }

    fn lose_if_resized(&mut self, width: usize) {
        self.lost |= self.column > 0 && self.width != width;
    }

    /// Follows the cursor through clean text.
    pub(super) fn advance(&mut self, text: &str, width: usize) {
        self.lose_if_resized(width);
        self.width = width;
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            let columns = c.width().unwrap_or(0);
            self.column = match c {
                '\n' => {
                    self.lost = false;
                    0
                }
                '\t' => (self.column / 8 * 8 + 8).min(width.saturating_sub(1)),
                '\u{1b}' => {
                    // One of our colours.
                    let _end = chars.find(|c| *c == 'm');
                    self.column
                }
                _ if self.column + columns > width => columns.max(1),
                _ => self.column + columns,
            };
        }
    }
}

/// As much of the line as fits into this many columns.
fn fitting(line: &str, columns: usize) -> String {
    let mut left = columns;
    let fits = |c: &char| {
        let taken = c.width().unwrap_or(0);
        let fits = taken <= left;
        left = left.saturating_sub(taken);
        fits
    };
    line.chars().filter(|c| !c.is_control()).take_while(fits).collect()
}

#[cfg(test)]
mod tests;
