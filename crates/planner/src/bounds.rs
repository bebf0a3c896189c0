//! What of large things goes into a prompt.

use std::borrow::Cow;

use serde_json::Value;

use crate::record::ExecutionRecord;

/// The most bytes of a prompt that the results of one turn take up, all in all.
pub const MAX_RESULTS_BYTES: usize = 256 * 1024;

/// The most bytes of the agent's system prompt that a planner sees.
pub const MAX_PROMPT_BYTES: usize = 8 * 1024;

/// The most bytes of earlier turns that a planner sees: the last of them.
pub const MAX_HISTORY_BYTES: usize = 8 * 1024;

/// The beginning of a text, at most `most` bytes of it.
pub(crate) fn text(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let kept = text.get(..text.floor_char_boundary(most)).unwrap_or_default();
    Cow::Owned(format!("{kept}… (shortened; all of it has {} bytes)", text.len()))
}

/// The records with results and errors of at most `each` bytes, and [`MAX_RESULTS_BYTES`] in all.
pub(crate) fn records(records: &[ExecutionRecord], each: usize) -> Vec<ExecutionRecord> {
    let mut left = MAX_RESULTS_BYTES;
    let mut bounded = Vec::with_capacity(records.len());
    for record in records {
        let mut record = record.clone();
        let most = each.min(left);
        let whole = record.result.to_string();
        if whole.len() > most {
            // Text stays text; anything else is shown as the beginning of its JSON.
            let begin = record.result.as_str().unwrap_or(&whole);
            record.result = Value::String(text(begin, most).into_owned());
        }
        record.error = text(&record.error, most).into_owned();
        left = left.saturating_sub(whole.len().min(most) + record.error.len());
        bounded.push(record);
    }
    bounded
}

#[cfg(test)]
mod tests;
