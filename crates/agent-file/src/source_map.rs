//! The positions of keys and values in an agent file.

use std::collections::HashMap;
use std::path::Path;

use helix_agents_core::error::{Error, ErrorCode};
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use helix_agents_tools::number;
use helix_agents_tools::text::{one_line, shortened};

/// The maximum number of problems in one error.
const MAX_PROBLEMS: usize = 50;
/// The maximum length of a problem in characters.
const MAX_CHARS: usize = 500;

/// The maximum length of a key in characters.
const MAX_KEY_CHARS: usize = 200;
/// The maximum number of keys and list items in a file.
const MAX_PARTS: usize = 20_000;

/// The context key that marks an error as one of an agent file.
pub(crate) const FILE: &str = "file";

/// The positions of all keys and values of a file.
#[derive(Debug, Default)]
pub(crate) struct SourceMap {
    file: String,
    text: String,
    node: SourceNode,
}

/// The byte offset of a key or value, and the positions inside it, by key or index.
#[derive(Debug, Default)]
struct SourceNode {
    at: Option<usize>,
    parts: HashMap<String, Self>,
}

/// A line and a column, both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    line: usize,
    column: usize,
}

/// A problem in an agent file.
#[derive(Debug)]
pub(crate) struct Problem {
    /// The byte offset of the problem. It is converted to a line only when the problem is reported.
    at: Option<usize>,
    message: String,
}

/// The problems in an error of an agent file, one per line of its message. `None` for other errors.
#[must_use]
pub fn problems(error: &Error) -> Option<Vec<&str>> {
    let of_file = error.context().any(|(key, _)| key == FILE);
    (of_file && error.code() == ErrorCode::AgentInvalid).then(|| error.message().lines().collect())
}

impl Position {
    /// Converts a byte offset to a line and a column.
    fn of(text: &str, at: usize) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let begin = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before.get(begin..).map_or(0, |line| line.chars().count()) + 1;
        Self { line: before.matches('\n').count() + 1, column }
    }
}

impl SourceMap {
    /// Creates the positions of a file that is not parsed yet.
    pub(crate) fn of_file(file: &Path, text: &str) -> Self {
        let file = one_line(&file.to_string_lossy()).into_owned();
        Self { file, text: text.to_owned(), node: SourceNode::default() }
    }

    /// Creates a problem with the key or value at a JSON pointer.
    pub(crate) fn problem(&self, pointer: &str, message: impl Into<String>) -> Problem {
        // A missing key has no position, so its nearest existing parent is used.
        let mut node = &self.node;
        for name in pointer.split('/').skip(1) {
            match node.parts.get(&*name.replace("~1", "/").replace("~0", "~")) {
                Some(part) => node = part,
                None => break,
            }
        }
        Problem { at: node.at, message: message.into() }
    }

    /// Creates a problem at a byte offset of the text.
    pub(crate) fn problem_at(at: usize, message: impl Into<String>) -> Problem {
        Problem { at: Some(at), message: message.into() }
    }

    /// Combines the problems into one error, in the order of their positions.
    pub(crate) fn error(&self, mut problems: Vec<Problem>) -> Error {
        problems.sort_by_key(|problem| problem.at);
        let mut lines: Vec<String> =
            problems.iter().take(MAX_PROBLEMS).map(|problem| self.describe(problem)).collect();
        if let Some(more) = problems.len().checked_sub(MAX_PROBLEMS).filter(|more| *more > 0) {
            lines.push(format!("and {more} more"));
        }
        let mut error = Error::new(ErrorCode::AgentInvalid, lines.join("\n"));
        error = error.with_context(FILE, &self.file);
        match problems.iter().find_map(|problem| problem.at) {
            Some(at) => {
                let place = Position::of(&self.text, at);
                error.with_context("line", place.line).with_context("column", place.column)
            }
            None => error,
        }
    }

    /// Formats a problem as one line without control characters.
    fn describe(&self, problem: &Problem) -> String {
        let message = shortened(&problem.message, MAX_CHARS);
        match problem.at.map(|at| Position::of(&self.text, at)) {
            Some(Position { line, column }) => {
                format!("{}, line {line}, column {column}: {message}", self.file)
            }
            None => format!("{}: {message}", self.file),
        }
    }

    /// Records the positions in a table and converts it to JSON.
    pub(crate) fn record(&mut self, table: &DeTable<'_>) -> (Map<String, Value>, Vec<Problem>) {
        let mut reader = Reader { parts: 0, problems: Vec::new() };
        let members = reader.table(&mut self.node, table);
        (members, reader.problems)
    }
}

/// Converts TOML to JSON. It recurses, because the parser rejects more than 80 levels.
struct Reader {
    /// The number of keys and items read so far.
    parts: usize,
    problems: Vec<Problem>,
}

impl Reader {
    fn table(&mut self, node: &mut SourceNode, table: &DeTable<'_>) -> Map<String, Value> {
        let mut keys: Vec<_> = table.iter().collect();
        keys.sort_by_key(|(key, _)| key.span().start);
        let mut members = Map::new();
        for (key, value) in keys {
            let (name, at) = (key.get_ref().as_ref(), key.span().start);
            if !self.has_room(at) {
                break;
            }
            if name.chars().count() > MAX_KEY_CHARS {
                let message = format!("the key is longer than {MAX_KEY_CHARS} characters");
                self.problems.push(SourceMap::problem_at(at, message));
                continue;
            }
            let value = self.value(node.part(name.to_owned(), at), value);
            members.insert(name.to_owned(), value);
        }
        members
    }

    /// Counts a key or item and returns `true` if it is within the limit. The first one above the limit
    /// is recorded as a problem.
    fn has_room(&mut self, at: usize) -> bool {
        self.parts = self.parts.saturating_add(1);
        if self.parts == MAX_PARTS + 1 {
            let message =
                format!("the file has more than {MAX_PARTS} keys and items; the rest is not read");
            self.problems.push(SourceMap::problem_at(at, message));
        }
        self.parts <= MAX_PARTS
    }

    fn value(&mut self, node: &mut SourceNode, value: &Spanned<DeValue<'_>>) -> Value {
        match value.get_ref() {
            DeValue::String(text) => Value::from(text.as_ref()),
            DeValue::Boolean(yes) => Value::from(*yes),
            DeValue::Integer(number) => {
                match i64::from_str_radix(number.as_str(), number.radix()) {
                    Ok(number) => Value::from(number),
                    Err(_) => self.refuse(value, "the number is too large"),
                }
            }
            DeValue::Float(number) => match number.as_str().parse().ok().and_then(number::json) {
                Some(number) => Value::Number(number),
                None => self.refuse(value, "the number is not finite, or too large"),
            },
            DeValue::Datetime(_) => {
                self.refuse(value, "dates are not supported; write a string in quotes")
            }
            DeValue::Array(items) => {
                let mut list = Vec::new();
                for (index, item) in items.iter().enumerate() {
                    let at = item.span().start;
                    if !self.has_room(at) {
                        break;
                    }
                    list.push(self.value(node.part(index.to_string(), at), item));
                }
                Value::Array(list)
            }
            DeValue::Table(table) => Value::Object(self.table(node, table)),
        }
    }

    fn refuse(&mut self, value: &Spanned<DeValue<'_>>, problem: &str) -> Value {
        self.problems.push(SourceMap::problem_at(value.span().start, problem));
        Value::Null
    }
}

impl SourceNode {
    fn part(&mut self, name: String, at: usize) -> &mut Self {
        let part = self.parts.entry(name).or_default();
        part.at = Some(at);
        part
    }
}
