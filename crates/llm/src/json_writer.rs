//! Writing JSON objects member by member.

use helix_agents_core::json::Json;
use serde::Serialize;

/// A JSON object that is being written.
#[derive(Debug)]
pub(crate) struct Object<'a> {
    out: &'a mut Vec<u8>,
    empty: bool,
}

impl<'a> Object<'a> {
    pub(crate) fn begin(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, empty: true }
    }

    /// Starts a member. The caller writes its value into the returned buffer.
    pub(crate) fn value(&mut self, key: &str) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.empty) {
            self.out.push(b',');
        }
        write_json(self.out, key);
        self.out.push(b':');
        self.out
    }

    pub(crate) fn member<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) {
        write_json(self.value(key), value);
    }

    /// Writes a member whose value is already JSON.
    pub(crate) fn raw(&mut self, key: &str, json: &[u8]) {
        self.value(key).extend_from_slice(json);
    }

    /// Writes the members of a JSON object. Anything else is ignored.
    pub(crate) fn members(&mut self, data: Option<&Json>) {
        let members = data.and_then(|data| data.text().strip_prefix('{')?.strip_suffix('}'));
        let members = members.map(str::trim).filter(|members| !members.is_empty());
        if let Some(members) = members {
            if !std::mem::take(&mut self.empty) {
                self.out.push(b',');
            }
            self.out.extend_from_slice(members.as_bytes());
        }
    }

    /// Writes a member, if it has a value.
    pub(crate) fn optional<T: Serialize>(&mut self, key: &str, value: Option<T>) {
        if let Some(value) = value {
            self.member(key, &value);
        }
    }

    pub(crate) fn end(self) {
        self.out.push(b'}');
    }
}

/// Writes a member, if it has a value that provider options do not replace.
pub(crate) fn optional<T: Serialize>(
    object: &mut Object<'_>,
    replaced: &dyn Fn(&str) -> bool,
    key: &str,
    value: Option<T>,
) {
    if value.is_some() && !replaced(key) {
        object.optional(key, value);
    }
}

/// Writes a value. The strings, numbers and trees of requests can always be serialized.
pub(crate) fn write_json<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let start = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(start);
        out.extend_from_slice(b"null");
    }
}
