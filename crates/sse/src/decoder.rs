//! A decoder of server-sent events that works in place in the read buffer.
//!
//! An event that arrives in one read and has one line of data is never copied. The events do not
//! depend on how reads split the stream.

use std::ops::Range;

use helix_agents_core::error::{Error, ErrorCode};

#[cfg(test)]
mod tests;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// An event with data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// The name in the field `event`; empty if there is none.
    pub name: &'a [u8],
    /// The lines of data, joined by line feeds.
    pub data: &'a [u8],
}

/// The callback that receives each event.
type OnEvent<'a, E> = dyn FnMut(Event<'_>) -> Result<(), E> + 'a;

/// Decodes the events of one stream. Ids, retry times and comments are skipped.
#[derive(Debug)]
pub struct Decoder {
    most_bytes: usize,
    /// The bytes of an incomplete event.
    carry: Vec<u8>,
    open: Open,
    joined: Vec<u8>,
    first_line: bool,
    /// Whether the last byte was a carriage return, so that a following line feed belongs to it.
    skip_line_feed: bool,
}

/// The event that is being read. Positions are relative to the start of the current bytes.
#[derive(Debug, Default)]
struct Open {
    start: usize,
    line: usize,
    searched: usize,
    name: Option<Range<usize>>,
    data: Option<Range<usize>>,
    more_data: Vec<Range<usize>>,
}

impl Decoder {
    /// Creates a decoder that rejects events of more than `most_bytes`.
    #[must_use]
    pub fn new(most_bytes: usize) -> Self {
        Self {
            most_bytes,
            carry: Vec::new(),
            open: Open::default(),
            joined: Vec::new(),
            first_line: true,
            skip_line_feed: false,
        }
    }

    /// Decodes the next bytes and passes every completed event to `on_event`.
    ///
    /// # Errors
    /// Returns [`ErrorCode::TooLarge`] for an event over the limit, and the errors of `on_event`.
    pub fn feed<E: From<Error>>(
        &mut self,
        read: &[u8],
        on_event: &mut OnEvent<'_, E>,
    ) -> Result<(), E> {
        if self.carry.is_empty() {
            self.scan(read, on_event)?;
            let rest = read.get(self.open.start..).unwrap_or_default();
            self.carry.extend_from_slice(rest);
        } else {
            let mut bytes = std::mem::take(&mut self.carry);
            bytes.extend_from_slice(read);
            self.scan(&bytes, on_event)?;
            bytes.drain(..self.open.start);
            self.carry = bytes;
        }
        self.open.rebase();
        if self.carry.len() > self.most_bytes {
            return Err(too_large(self.most_bytes).into());
        }
        Ok(())
    }

    /// Passes on the last event if it has data but was not completed, because some servers omit the
    /// last blank line.
    ///
    /// # Errors
    /// Returns the errors of [`feed`](Self::feed).
    pub fn finish<E: From<Error>>(&mut self, on_event: &mut OnEvent<'_, E>) -> Result<(), E> {
        self.feed(b"\n\n", on_event)
    }

    fn scan<E: From<Error>>(
        &mut self,
        bytes: &[u8],
        on_event: &mut OnEvent<'_, E>,
    ) -> Result<(), E> {
        loop {
            if self.skip_line_feed {
                match bytes.get(self.open.line) {
                    None => return Ok(()),
                    Some(b'\n') => self.open.step_over_line_feed(),
                    Some(_) => {}
                }
                self.skip_line_feed = false;
            }
            let unseen = bytes.get(self.open.searched..).unwrap_or_default();
            let Some(distance) = memchr::memchr2(b'\n', b'\r', unseen) else {
                self.open.searched = bytes.len();
                return Ok(());
            };
            let end = self.open.searched + distance;
            self.skip_line_feed = bytes.get(end) == Some(&b'\r');
            self.line(bytes, end, on_event)?;
        }
    }

    /// Handles the line that ends before `end`.
    fn line<E: From<Error>>(
        &mut self,
        bytes: &[u8],
        end: usize,
        on_event: &mut OnEvent<'_, E>,
    ) -> Result<(), E> {
        let mut start = self.open.line;
        let mut line = bytes.get(start..end).unwrap_or_default();
        if std::mem::take(&mut self.first_line)
            && let Some(rest) = line.strip_prefix(BYTE_ORDER_MARK)
        {
            start += BYTE_ORDER_MARK.len();
            line = rest;
        }
        if line.is_empty() {
            return self.dispatch(bytes, end, on_event);
        }
        if let Some(value) = line.strip_prefix(b"data")
            && let Some(skip) = value_offset(value)
        {
            self.open.add_data(start + 4 + skip..end);
        } else if let Some(value) = line.strip_prefix(b"event")
            && let Some(skip) = value_offset(value)
        {
            self.open.name = Some(start + 5 + skip..end);
        } else if self.open.data.is_none() && self.open.name.is_none() {
            // Comments and other fields are not kept.
            self.open.start = end + 1;
        }
        self.open.line = end + 1;
        self.open.searched = end + 1;
        Ok(())
    }

    fn dispatch<E: From<Error>>(
        &mut self,
        bytes: &[u8],
        end: usize,
        on_event: &mut OnEvent<'_, E>,
    ) -> Result<(), E> {
        let open = std::mem::take(&mut self.open);
        self.open.start = end + 1;
        self.open.line = end + 1;
        self.open.searched = end + 1;
        let Some(first) = open.data else {
            return Ok(());
        };
        if end - open.start > self.most_bytes {
            return Err(too_large(self.most_bytes).into());
        }
        let name = open.name.and_then(|name| bytes.get(name)).unwrap_or_default();
        let data = bytes.get(first).unwrap_or_default();
        if open.more_data.is_empty() {
            return on_event(Event { name, data });
        }
        self.joined.clear();
        self.joined.extend_from_slice(data);
        for range in open.more_data {
            self.joined.push(b'\n');
            self.joined.extend_from_slice(bytes.get(range).unwrap_or_default());
        }
        on_event(Event { name, data: &self.joined })
    }
}

impl Open {
    fn add_data(&mut self, range: Range<usize>) {
        if self.data.is_none() {
            self.data = Some(range);
        } else {
            self.more_data.push(range);
        }
    }

    fn step_over_line_feed(&mut self) {
        if self.start == self.line {
            self.start += 1;
        }
        self.line += 1;
        self.searched = self.searched.max(self.line);
    }

    /// Makes positions relative to the start of this event, because the bytes before it are
    /// dropped.
    fn rebase(&mut self) {
        let by = std::mem::take(&mut self.start);
        if by == 0 {
            return;
        }
        self.line -= by;
        self.searched -= by;
        for range in self.name.iter_mut().chain(&mut self.data).chain(&mut self.more_data) {
            range.start -= by;
            range.end -= by;
        }
    }
}

/// Returns the offset of the value after a field's name: after the colon and one space. Returns
/// `None` for a longer name that only starts with the field's name.
fn value_offset(after_name: &[u8]) -> Option<usize> {
    match after_name {
        [] => Some(0),
        [b':', b' ', ..] => Some(2),
        [b':', ..] => Some(1),
        _ => None,
    }
}

fn too_large(most_bytes: usize) -> Error {
    Error::new(
        ErrorCode::TooLarge,
        format!("an event of the stream has more than {most_bytes} bytes"),
    )
}
