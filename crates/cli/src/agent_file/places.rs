//! Where in an agent file each key stands.

use std::collections::HashMap;
use std::path::Path;

use helix_agents::error::{Error, ErrorCode};
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::number;
use crate::text::shortened;

/// How many problems are told at once, and how many characters of each.
const MOST: usize = 10;
const MOST_CHARS: usize = 500;

/// Lines and columns by JSON pointer.
#[derive(Debug, Default)]
pub(crate) struct Places {
    file: String,
    places: HashMap<String, Place>,
}

/// A line and a column, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    line: usize,
    column: usize,
}

/// Something that is wrong with an agent file.
#[derive(Debug)]
pub(crate) struct Problem {
    place: Option<Place>,
    message: String,
}

impl Place {
    /// The place of a byte.
    pub(super) fn of(text: &str, at: usize) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let begin = before.rfind('\n').map_or(0, |it| it + 1);
        let column = before.get(begin..).map_or(0, |it| it.chars().count()) + 1;
        Self { line: before.matches('\n').count() + 1, column }
    }
}

impl Places {
    /// Those of a file in which nothing was read yet.
    pub(super) fn of_file(file: &Path) -> Self {
        Self { file: file.display().to_string(), places: HashMap::new() }
    }

    /// A problem with what stands at a JSON pointer.
    pub(crate) fn problem(&self, pointer: &str, message: impl Into<String>) -> Problem {
        // What is missing has no place of its own; what it is missing in has.
        let mut at = pointer;
        let place = loop {
            match (self.places.get(at), at.rfind('/')) {
                (None, Some(end)) => at = at.get(..end).unwrap_or_default(),
                (place, _) => break place.copied(),
            }
        };
        Problem { place, message: message.into() }
    }

    /// A problem at a byte of the text.
    pub(super) fn problem_at(text: &str, at: usize, message: impl Into<String>) -> Problem {
        Problem { place: Some(Place::of(text, at)), message: message.into() }
    }

    /// The error that tells of all the problems, in the order in which they stand in the file.
    pub(crate) fn error(&self, mut problems: Vec<Problem>) -> Error {
        let order = |it: &Problem| it.place.map_or((0, 0), |it| (it.line, it.column));
        problems.sort_by_key(order);
        let mut lines: Vec<String> =
            problems.iter().take(MOST).map(|it| self.describe(it)).collect();
        if let Some(more) = problems.len().checked_sub(MOST).filter(|more| *more > 0) {
            lines.push(format!("and {more} more"));
        }
        let mut error = Error::new(ErrorCode::AgentInvalid, lines.join("\n"));
        error = error.with_context("file", &self.file);
        match problems.iter().find_map(|it| it.place) {
            Some(place) => {
                error.with_context("line", place.line).with_context("column", place.column)
            }
            None => error,
        }
    }

    /// In one line, and without what would move the cursor of whoever reads it.
    fn describe(&self, problem: &Problem) -> String {
        let Problem { place, message } = problem;
        let message = shortened(message, MOST_CHARS);
        match place {
            Some(Place { line, column }) => {
                format!("{}, line {line}, column {column}: {message}", self.file)
            }
            None => format!("{}: {message}", self.file),
        }
    }

    /// Notes where everything in a table stands, and makes JSON of it.
    pub(super) fn take_in(
        &mut self,
        text: &str,
        table: &DeTable<'_>,
    ) -> (Map<String, Value>, Vec<Problem>) {
        let mut reader = Reader { text, places: &mut self.places, problems: Vec::new() };
        let members = reader.table("", table);
        (members, reader.problems)
    }
}

/// The parser refuses more than 80 levels, so this may recurse.
struct Reader<'a> {
    text: &'a str,
    places: &'a mut HashMap<String, Place>,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn table(&mut self, pointer: &str, table: &DeTable<'_>) -> Map<String, Value> {
        let mut keys: Vec<_> = table.iter().collect();
        keys.sort_by_key(|(key, _)| key.span().start);
        let mut members = Map::new();
        for (key, value) in keys {
            let name = key.get_ref().as_ref();
            let pointer = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
            self.places.insert(pointer.clone(), Place::of(self.text, key.span().start));
            let value = self.value(&pointer, value);
            members.insert(name.to_owned(), value);
        }
        members
    }

    fn value(&mut self, pointer: &str, value: &Spanned<DeValue<'_>>) -> Value {
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
                self.refuse(value, "no dates are needed here; a text needs quotes")
            }
            DeValue::Array(items) => {
                let mut list = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    let pointer = format!("{pointer}/{index}");
                    self.places.insert(pointer.clone(), Place::of(self.text, item.span().start));
                    list.push(self.value(&pointer, item));
                }
                Value::Array(list)
            }
            DeValue::Table(table) => Value::Object(self.table(pointer, table)),
        }
    }

    fn refuse(&mut self, value: &Spanned<DeValue<'_>>, problem: &str) -> Value {
        self.problems.push(Places::problem_at(self.text, value.span().start, problem));
        Value::Null
    }
}
