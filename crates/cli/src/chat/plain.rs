//! Entries from a pipe or file: each line is one, unless it ends with a `\`.

use std::io::{BufRead, Read as _};

use anyhow::Result;
use helix_agents::error::{Error, ErrorCode};

/// The most bytes of an entry.
pub(super) const MOST: usize = 1 << 20;

/// Whether a line goes on in the next one: it ends with a `\` that is not itself behind one.
pub(super) fn goes_on(line: &str) -> bool {
    let behind = line.bytes().rev().take_while(|byte| *byte == b'\\').count();
    behind % 2 == 1
}

/// The entry of lines that go on.
pub(super) fn joined(lines: &str) -> String {
    let lines: Vec<_> = lines.split('\n').collect();
    let last = lines.len().saturating_sub(1);
    let cut = |(index, line): (usize, &&str)| {
        let cut = if index < last && goes_on(line) { line.strip_suffix('\\') } else { None };
        cut.unwrap_or(line).to_owned()
    };
    lines.iter().enumerate().map(cut).collect::<Vec<_>>().join("\n")
}

/// The next entry; none at the end. What cannot be one is behind it then: another one can be read.
pub(super) fn read(input: &mut impl BufRead) -> Result<Option<String>> {
    let mut bytes = Vec::new();
    loop {
        let left = (MOST + 1).saturating_sub(bytes.len());
        let read = input.by_ref().take(left as u64).read_until(b'\n', &mut bytes)?;
        if bytes.len() > MOST {
            if !bytes.ends_with(b"\n") {
                skip_line(input)?;
            }
            let message = "a line of standard input is longer than a message may be";
            return Err(Error::new(ErrorCode::InputInvalid, message)
                .with_context("most_bytes", MOST)
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
            _ if goes_on(line.rsplit('\n').next().unwrap_or(line)) => {}
            _ => return Ok(Some(joined(line))),
        }
    }
}

/// Reads to the end of the line, and keeps nothing.
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
