//! Server-sent events, as far as model servers use them: lines that begin with `data: `.

use anyhow::Result;

/// Finds events in pieces of a response.
#[derive(Default)]
pub(super) struct Events {
    /// The beginning of a line that continues in the next piece.
    rest: Vec<u8>,
}

impl Events {
    /// Passes on the data of each event that this piece completes.
    pub(super) fn feed(
        &mut self,
        mut piece: &[u8],
        mut take: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        while let Some(end) = memchr::memchr(b'\n', piece) {
            let (line, after) = piece.split_at(end);
            piece = after.get(1..).unwrap_or_default();
            if self.rest.is_empty() {
                data(line, &mut take)?;
            } else {
                self.rest.extend_from_slice(line);
                data(&self.rest, &mut take)?;
                self.rest.clear();
            }
        }
        self.rest.extend_from_slice(piece);
        Ok(())
    }
}

fn data(line: &[u8], take: &mut impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    line.strip_prefix(b"data: ").map_or(Ok(()), take)
}
