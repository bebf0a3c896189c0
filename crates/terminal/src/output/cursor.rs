//! Tracks the cursor, so that the status line can be shown and hidden without changing the text.

use unicode_width::UnicodeWidthChar as _;

use super::clean::RESET;

/// The cursor of a terminal that shows text and sometimes a status line below it.
///
/// While the status line is shown, the cursor is at its start. A killed process leaves it there, and after
/// a resize to a narrower terminal an erase to the end of the screen still removes the whole line.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    column: usize,
    /// The width of the terminal when the last text was written.
    width: usize,
    /// Whether the column is unknown, because the terminal was resized in the middle of a line. Some
    /// terminals wrap the line again and some do not.
    lost: bool,
    shown: Option<Shown>,
}

#[derive(Debug, Clone, Copy)]
struct Shown {
    /// The column at which the text continues in the line above.
    column: usize,
    /// The width of the terminal when the line was shown.
    width: usize,
}

impl Cursor {
    /// Returns `true` if there is text before the cursor in its line. The status line does not count.
    pub(super) fn is_in_line(&self) -> bool {
        self.column > 0
    }

    /// The output that shows the status line, cut to the width of the terminal.
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

    /// The output that hides the status line and moves the cursor back to the end of the text.
    pub(super) fn hide(&mut self, width: usize) -> String {
        let Some(shown) = self.shown.take() else { return String::new() };
        let mut bytes = "\r\u{1b}[J".to_owned();
        let is_known = shown.width == width && shown.column < width;
        if shown.column > 0 && is_known && !self.lost {
            bytes.push_str(&format!("\u{1b}[A\u{1b}[{}G", shown.column + 1));
        } else {
            // The line above is full or was wrapped again, so the text continues below it.
            self.column = 0;
            self.lost = false;
        }
        bytes
    }

    fn lose_if_resized(&mut self, width: usize) {
        self.lost |= self.column > 0 && self.width != width;
    }

    /// Updates the position for sanitized text.
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
                    // One of the program's own colours.
                    let _end = chars.find(|c| *c == 'm');
                    self.column
                }
                _ if self.column + columns > width => columns.max(1),
                _ => self.column + columns,
            };
        }
    }
}

/// Cuts the line to this many columns.
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
