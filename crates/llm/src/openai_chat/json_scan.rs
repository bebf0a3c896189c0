//! Recognition of the end of JSON text that arrives in pieces, without reading any of it twice.

#[cfg(test)]
mod tests;

/// The state of a scan of JSON text. It tracks only brackets and strings: text that is no JSON may
/// count as complete, but JSON never does before its end.
#[derive(Debug, Default)]
pub(super) struct JsonScan {
    /// The number of bytes that have been read.
    scanned: usize,
    /// The number of open brackets.
    depth: usize,
    in_string: bool,
    /// Whether the last byte was a backslash in a string.
    escaped: bool,
    has_ended: bool,
    /// Whether the text is more than one object, list or string.
    has_excess: bool,
}

impl JsonScan {
    /// Returns `true` if the text is a complete object, list or string. `text` starts with the
    /// text of the previous check. A number or a literal has no visible end and does
    /// not count.
    pub(super) fn is_complete(&mut self, text: &str) -> bool {
        let news = text.as_bytes().get(self.scanned..).unwrap_or_default();
        news.iter().for_each(|byte| self.add(*byte));
        self.scanned += news.len();
        self.has_ended && !self.has_excess
    }

    fn add(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => {
                    self.in_string = false;
                    self.has_ended = self.depth == 0;
                }
                _ => {}
            }
            return;
        }
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' => {}
            _ if self.has_ended => self.has_excess = true,
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.has_ended = self.depth == 0;
            }
            _ => self.has_excess |= self.depth == 0,
        }
    }
}
