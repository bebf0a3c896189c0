//! JSON as a tree that can become invalid: members may be repeated, and a scalar may be any text.

use serde_json::Value;

/// A node of the tree.
#[derive(Debug, Clone)]
pub(crate) enum Tree {
    /// The text of a scalar, or any other text in its place.
    Raw(String),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
}

impl Tree {
    /// Parses JSON. Returns `None` if it is invalid.
    pub(crate) fn parse(json: &[u8]) -> Option<Self> {
        serde_json::from_slice::<Value>(json).ok().map(|value| Self::from(&value))
    }

    /// Returns the number of nodes.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Raw(_) => 1,
            Self::List(items) => 1 + items.iter().map(Self::size).sum::<usize>(),
            Self::Object(members) => {
                1 + members.iter().map(|(_, member)| member.size()).sum::<usize>()
            }
        }
    }

    /// Returns the node at a position of the tree, in the order of the text.
    pub(crate) fn node(&mut self, position: usize) -> Option<&mut Self> {
        self.find(&mut { position })
    }

    fn find(&mut self, left: &mut usize) -> Option<&mut Self> {
        if *left == 0 {
            return Some(self);
        }
        *left -= 1;
        match self {
            Self::Raw(_) => None,
            Self::List(items) => items.iter_mut().find_map(|item| item.find(left)),
            Self::Object(members) => members.iter_mut().find_map(|(_, member)| member.find(left)),
        }
    }

    /// Writes the tree as text.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Raw(text) => out.extend_from_slice(text.as_bytes()),
            Self::List(items) => {
                out.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    item.write(out);
                }
                out.push(b']');
            }
            Self::Object(members) => {
                out.push(b'{');
                for (index, (key, member)) in members.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    out.extend_from_slice(Value::from(key.as_str()).to_string().as_bytes());
                    out.push(b':');
                    member.write(out);
                }
                out.push(b'}');
            }
        }
    }

    /// Passes every member of an object in the tree on.
    pub(crate) fn members(&self, pass_on: &mut impl FnMut(&str, &Self)) {
        match self {
            Self::Raw(_) => {}
            Self::List(items) => items.iter().for_each(|item| item.members(pass_on)),
            Self::Object(members) => {
                for (key, member) in members {
                    pass_on(key, member);
                    member.members(pass_on);
                }
            }
        }
    }
}

impl From<&Value> for Tree {
    fn from(value: &Value) -> Self {
        match value {
            Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            Value::Object(members) => Self::Object(
                members.iter().map(|(key, member)| (key.clone(), Self::from(member))).collect(),
            ),
            scalar => Self::Raw(scalar.to_string()),
        }
    }
}
