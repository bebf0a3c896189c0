//! Reads entries from a pipe or file: one per line, unless a line ends with a `\`.

use std::io::{BufRead, Read as _};

use anyhow::Result;
use helix_agents::error::{Error, ErrorCode};

/// The maximum length of an entry in bytes.
pub(super) const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// Returns `true` if a line continues on the next line: it ends with a `\` that is not escaped by
/// another one.
pub(super) fn is_continued(line: &str) -> bool {
    let behind = line.bytes().rev().take_while(|byte| *byte == b'\\').count();
    behind % 2 == 1
}

/// Joins continued lines to one entry.
pub(super) fn joined(lines: &str) -> String {
    let lines: Vec<_> = lines.split('\n').collect();
    let last = lines.len().saturating_sub(1);
    let cut = |(index, line): (usize, &&str)| {
        let cut = if index < last && is_continued(line) { line.strip_suffix('\\') } else { None };
        cut.unwrap_or(line).to_owned()
    };
    lines.iter().enumerate().map(cut).collect::<Vec<_>>().join("\n")
}

/// Reads the next entry; `None` at the end of the input. After an error the invalid line is consumed,
/// and the next entry can be read.
pub(super) fn read(input: &mut impl BufRead) -> Result<Option<String>> {
    let mut bytes = Vec::new();
    loop {
        let left = (MAX_MESSAGE_BYTES + 1).saturating_sub(bytes.len());
        let read = input.by_ref().take(left as u64).read_until(b'\n', &mut bytes)?;
        if bytes.len() > MAX_MESSAGE_BYTES {
            if !bytes.ends_with(b"\n") {
                skip_line(input)?;
            }
            let message = "a line of standard input exceeds the maximum length of a message";
            return Err(Error::new(ErrorCode::InputInvalid, message)
                .with_context("most_bytes", MAX_MESSAGE_BYTES)
                .into());
        }
        let line = std::str::from_utf8(&bytes).map_err(|source| {
            Error::new(ErrorCode::InputInvalid, "standard input is not UTF-8 text")
                .with_source(source)
        })?;
        let line = line.strip_suffix('\n').unwrap_or(line);
        match read {
            0 if line.is_empty() => return Ok(None),
            0 => return Ok(Some(joined(line))),
            _ if is_continued(line.rsplit('\n').next().unwrap_or(line)) => {}
            _ => return Ok(Some(joined(line))),
        }
    }
}

/// Reads and discards the rest of the line.
fn skip_line(input: &mut impl BufRead) -> Result<()> {
    loop {
        let read = input.fill_buf()?;
        if read.is_empty() {
            return Ok(());
        }
        let end = read.iter().position(|byte| *byte == b'\n');
        let skipped = end.map_or(read.len(), |end| end + 1);
        input.consume(skipped);
        if end.is_some() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests;
