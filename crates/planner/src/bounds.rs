//! Size limits for the contents of a prompt.

use std::borrow::Cow;

use serde_json::Value;

use crate::record::ExecutionRecord;

/// The maximum size in bytes of all results of one turn in a prompt.
pub const MAX_RESULTS_BYTES: usize = 256 * 1024;

/// The maximum size in bytes of the agent's system prompt that a planner sees.
pub const MAX_PROMPT_BYTES: usize = 8 * 1024;

/// The maximum size in bytes of the earlier turns that a planner sees. The latest turns are kept.
pub const MAX_HISTORY_BYTES: usize = 8 * 1024;

/// Returns the start of a text, at most `most` bytes of it.
pub(crate) fn text(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let kept = text.get(..text.floor_char_boundary(most)).unwrap_or_default();
    Cow::Owned(format!("{kept}… (shortened; the whole text has {} bytes)", text.len()))
}

/// Returns the records with results and errors of at most `each` bytes, and at most
/// [`MAX_RESULTS_BYTES`] in total.
pub(crate) fn records(records: &[ExecutionRecord], each: usize) -> Vec<ExecutionRecord> {
    let mut left = MAX_RESULTS_BYTES;
    let mut bounded = Vec::with_capacity(records.len());
    for record in records {
        let mut record = record.clone();
        let most = each.min(left);
        let whole = record.result.to_string();
        if whole.len() > most {
            // Text stays text. Any other result is shown as the start of its JSON.
            let shown = record.result.as_str().unwrap_or(&whole);
            record.result = Value::String(text(shown, most).into_owned());
        }
        record.error = text(&record.error, most).into_owned();
        left = left.saturating_sub(whole.len().min(most) + record.error.len());
        bounded.push(record);
    }
    bounded
}

#[cfg(test)]
mod tests;
