//! The mutations of a reply: of its units, of their JSON, and of its bytes.

use helix_agents_conformance::rng::Rng;

use super::body::{Body, Framing, Unit};
use super::pool::Pool;
use super::tree::Tree;

/// The maximum size to which repetitions extend a body.
const MAX_BYTES: usize = 1_000_000;

/// Values that parsers and readers treat in special ways. Some are not JSON.
const VALUES: [&str; 32] = [
    "null",
    "true",
    "false",
    "0",
    "-1",
    "-0.0",
    "1.5",
    "1e308",
    "1e400",
    "-1e400",
    "4294967296",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "\"\"",
    "\" \"",
    "\"\\n\"",
    "\"\u{1}\"",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "\"\\udc00\\ud800\"",
    "\"🦀\u{202e}\u{feff}\"",
    "\"\\x\"",
    "\"{\\\"a\\\":\"",
    "\"[]\"",
    "\"[1e400]\"",
    "[]",
    "{}",
    "[null]",
    "[[[]]]",
    "{\"\":{\"\":0}}",
    "NaN",
];

/// Bytes that separate texts, or that occur in no text.
const BYTES: [u8; 16] =
    [0, 9, b'\n', b'\r', b' ', b'"', b'\\', b':', b',', b'[', b']', b'{', b'}', 0x80, 0xc0, 0xff];

/// Mutates the units of a body or their contents, and returns the name of the mutation.
pub(crate) fn body(body: &mut Body, pool: &Pool, rng: &mut Rng) -> &'static str {
    if rng.once_in(4) {
        return units(body, pool, rng);
    }
    let position = rng.below(body.units.len());
    let Some(unit) = body.units.get_mut(position) else { return "nothing" };
    if rng.once_in(8) {
        return bytes(&mut unit.data, rng);
    }
    let Some(mut tree) = Tree::parse(&unit.data) else { return bytes(&mut unit.data, rng) };
    let position = rng.below(tree.size());
    let Some(node) = tree.node(position) else { return "nothing" };
    let name = value(node, pool, rng);
    unit.data.clear();
    tree.write(&mut unit.data);
    name
}

/// Mutates a complete body.
pub(crate) fn encoded(out: &mut Vec<u8>, rng: &mut Rng) -> &'static str {
    match rng.below(4) {
        0 => {
            out.truncate(rng.below(out.len()));
            "truncate"
        }
        1 => {
            let line_end: &[u8] = if rng.once_in(2) { b"\r\n" } else { b"\r" };
            let lines: Vec<&[u8]> = out.split(|byte| *byte == b'\n').collect();
            *out = lines.join(line_end);
            "other line ends"
        }
        _ => bytes(out, rng),
    }
}

fn units(body: &mut Body, pool: &Pool, rng: &mut Rng) -> &'static str {
    let units = &mut body.units;
    let (from, to) = (rng.below(units.len()), rng.below(units.len() + 1));
    let Some(unit) = units.get(from).cloned() else { return "nothing" };
    match rng.below(7) {
        0 => {
            units.insert(to, unit);
            "duplicate a unit"
        }
        1 => {
            units.remove(from);
            "drop a unit"
        }
        2 => {
            let unit = units.remove(from);
            units.insert(to.min(units.len()), unit);
            "move a unit"
        }
        3 => {
            units.truncate(to);
            "drop the last units"
        }
        4 => {
            let number = small(20_000, rng).min(MAX_BYTES / unit.len().max(1));
            units.splice(to..to, std::iter::repeat_n(unit, number));
            "repeat a unit"
        }
        5 if body.framing == Framing::Events => {
            let noise = [": ping\n\n", "\n\n", "data:\n\n", "event: ping\ndata: {}\n\n", "data\n"];
            let noise = rng.pick(&noise).copied().unwrap_or_default();
            units.insert(to, Unit::event(noise));
            "insert a unit without a meaning"
        }
        _ => {
            let others = pool.units(body.framing);
            units.splice(to..to, rng.pick(&others).map(|other| (*other).clone()));
            "insert a unit of another reply"
        }
    }
}

fn value(node: &mut Tree, pool: &Pool, rng: &mut Rng) -> &'static str {
    match (rng.below(4), node) {
        (0, Tree::Object(members)) => object(members, pool, rng),
        (0, Tree::List(items)) => list(items, pool, rng),
        (0, Tree::Raw(text)) => scalar(text, rng),
        (1, node) => {
            *node = rng.pick(&pool.values).cloned().unwrap_or(Tree::List(Vec::new()));
            "replace a value by a recorded one"
        }
        (2, node) => {
            *node = Tree::Raw(rng.pick(&VALUES).copied().unwrap_or_default().to_owned());
            "replace a value by a special one"
        }
        (_, node) => large(node, rng),
    }
}

fn object(members: &mut Vec<(String, Tree)>, pool: &Pool, rng: &mut Rng) -> &'static str {
    let (from, to) = (rng.below(members.len()), rng.below(members.len() + 1));
    let any = rng.pick(&pool.values).cloned().unwrap_or(Tree::List(Vec::new()));
    let key = rng.pick(&pool.keys).cloned().unwrap_or_default();
    if members.is_empty() || rng.once_in(4) {
        members.insert(to, (key, any));
        return "add a member";
    }
    match rng.below(4) {
        0 => {
            members.remove(from);
            "remove a member"
        }
        1 => {
            let copy = members.get(from).cloned();
            let copy = copy.map(|(key, member)| (key, if rng.once_in(2) { any } else { member }));
            members.splice(to..to, copy);
            "repeat a key"
        }
        2 => {
            if let Some(member) = members.get_mut(from) {
                member.0 = key;
            }
            "rename a member"
        }
        _ => {
            let last = members.len() - 1;
            members.swap(from, to.min(last));
            let keys: Vec<String> = members.iter().map(|(key, _)| key.clone()).rev().collect();
            for (member, key) in members.iter_mut().zip(keys) {
                member.0 = key;
            }
            "exchange the values of members"
        }
    }
}

fn list(items: &mut Vec<Tree>, pool: &Pool, rng: &mut Rng) -> &'static str {
    let (from, to) = (rng.below(items.len()), rng.below(items.len() + 1));
    let any = rng.pick(&pool.values).cloned().unwrap_or(Tree::List(Vec::new()));
    match (rng.below(4), items.get(from).cloned()) {
        (0, Some(_)) => {
            items.remove(from);
            "remove an item"
        }
        (1, Some(item)) => {
            let number = small(20_000, rng).min(MAX_BYTES / length(&item).max(1));
            items.splice(to..to, std::iter::repeat_n(item, number));
            "repeat an item"
        }
        (2, Some(item)) => {
            items.remove(from);
            items.insert(to.min(items.len()), item);
            "move an item"
        }
        _ => {
            items.insert(to, any);
            "add an item"
        }
    }
}

/// Returns the number of bytes of a value.
fn length(value: &Tree) -> usize {
    let mut written = Vec::new();
    value.write(&mut written);
    written.len()
}

fn scalar(text: &mut String, rng: &mut Rng) -> &'static str {
    if let Ok(number) = text.parse::<i64>() {
        let change = i64::from(byte(rng)) - 128;
        *text = number.wrapping_add(change).to_string();
        return "change a number";
    }
    let Some(inner) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) else {
        *text = format!("\"{text}\"");
        return "write a scalar as a string";
    };
    match rng.below(4) {
        0 => {
            *text = inner.to_owned();
            "remove the quotes of a string"
        }
        1 => {
            // Positions within an escape or a character are moved to its start.
            let end = inner.floor_char_boundary(rng.below(inner.len()));
            let start = inner.get(..end).unwrap_or_default().trim_end_matches('\\');
            *text = format!("\"{start}\"");
            "shorten a string"
        }
        2 => {
            *text = format!("\"{inner}{inner}\"");
            "double a string"
        }
        _ => {
            let end = inner.floor_char_boundary(rng.below(inner.len()));
            let (start, rest) = inner.split_at(end);
            let start = start.trim_end_matches('\\');
            let special = ["\\u0000", "\\ud83e", "🦀", "\u{7f}", "\\\"", "{}", "/../", "\\r\\n"];
            let special = rng.pick(&special).copied().unwrap_or_default();
            *text = format!("\"{start}{special}{rest}\"");
            "insert into a string"
        }
    }
}

/// Replaces a value by a large one, or surrounds it.
fn large(node: &mut Tree, rng: &mut Rng) -> &'static str {
    let number = 1 + small(300_000, rng);
    let mut inner = Vec::new();
    node.write(&mut inner);
    let inner = String::from_utf8_lossy(&inner).into_owned();
    let (text, name) = match rng.below(6) {
        0 => (format!("\"{}\"", "long ".repeat(number)), "a long string"),
        1 => (format!("\"{}\"", "\\u00e9".repeat(number)), "a long string of escapes"),
        2 => ("9".repeat(number), "a long number"),
        3 => (format!("{}{inner}{}", "[".repeat(number), "]".repeat(number)), "nested lists"),
        4 => {
            let (start, end) = ("{\"a\":".repeat(number), "}".repeat(number));
            (format!("{start}{inner}{end}"), "nested objects")
        }
        _ => {
            let items = ["0", "[0]", "{\"a\":0}", "\"\"", "null"];
            let item = rng.pick(&items).copied().unwrap_or_default();
            (format!("[{}{item}]", format!("{item},").repeat(number)), "a long list")
        }
    };
    *node = Tree::Raw(text);
    name
}

fn bytes(out: &mut Vec<u8>, rng: &mut Rng) -> &'static str {
    let (from, number) = (rng.below(out.len()), 1 + small(64, rng));
    let to = (from + number).min(out.len());
    match rng.below(6) {
        0 => {
            if let Some(byte) = out.get_mut(from) {
                *byte ^= 1 << rng.below(8);
            }
            "flip a bit"
        }
        1 => {
            out.drain(from..to);
            "delete bytes"
        }
        2 => {
            let copy = out.get(from..to).unwrap_or_default().to_vec();
            out.splice(from..from, copy);
            "duplicate bytes"
        }
        3 => {
            let noise: Vec<u8> = (0..number).map(|_| byte(rng)).collect();
            out.splice(from..from, noise);
            "insert random bytes"
        }
        4 => {
            let byte = rng.pick(&BYTES).copied().unwrap_or_default();
            out.splice(from..from, std::iter::repeat_n(byte, number.min(4)));
            "insert special bytes"
        }
        _ => {
            if let Some(byte) = out.get_mut(from) {
                *byte = rng.pick(&BYTES).copied().unwrap_or_default();
            }
            "overwrite a byte"
        }
    }
}

/// Returns a number below a limit. Small ones are much more frequent than large ones.
pub(crate) fn small(limit: usize, rng: &mut Rng) -> usize {
    let bits = usize::BITS - limit.leading_zeros();
    let bits = rng.below(bits as usize + 1);
    rng.below((1 << bits).min(limit))
}

fn byte(rng: &mut Rng) -> u8 {
    let [byte, ..] = rng.roll().to_le_bytes();
    byte
}
