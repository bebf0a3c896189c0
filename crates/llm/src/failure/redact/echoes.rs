//! Parts of a provider's message that quote the conversation.

use std::collections::{HashMap, HashSet, VecDeque};

/// The minimum length at which text that the message shares with the conversation counts as a
/// quote.
const ECHO_BYTES: usize = 16;

/// The factor of the rolling hash. Any large odd number serves.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// Returns which bytes of the text occur in the conversation, which is JSON.
///
/// A run of white space equals one space, and an escape equals the character that it stands for, however many
/// backslashes precede it: a provider may quote a text from a string, or from JSON in a string. The conversation is read
/// once, whatever the length of the text.
pub(super) fn echoes(text: &str, conversation: &[u8]) -> Vec<bool> {
    let mut hidden = vec![false; text.len()];
    let flat: Vec<_> = Flat::new(text.as_bytes()).collect();
    let mut starts: HashMap<u64, Vec<usize>> = HashMap::new();
    let mut roll = Roll::default();
    for (at, byte) in flat.iter().enumerate() {
        if let Some(hash) = roll.push(byte.value) {
            starts.entry(hash).or_default().push(at + 1 - ECHO_BYTES);
        }
    }
    if starts.is_empty() {
        return hidden;
    }
    // The first 16 bits of the hash rule out nearly every window without a look-up in the map.
    let mut bits = vec![false; 1 << 16];
    for hash in starts.keys() {
        bits.iter_mut().skip(first_bits(*hash)).take(1).for_each(|bit| *bit = true);
    }
    let mut found = HashSet::new();
    let mut roll = Roll::default();
    for byte in Flat::new(conversation) {
        if let Some(hash) = roll.push(byte.value)
            && bits.get(first_bits(hash)).copied().unwrap_or_default()
            && starts.contains_key(&hash)
        {
            found.insert(hash);
        }
    }
    for start in found.iter().filter_map(|hash| starts.get(hash)).flatten() {
        for byte in flat.iter().skip(*start).take(ECHO_BYTES) {
            super::hide(&mut hidden, byte.start, byte.end);
        }
    }
    hidden
}

fn first_bits(hash: u64) -> usize {
    usize::try_from(hash >> 48).unwrap_or_default()
}

/// The hash of the last [`ECHO_BYTES`] bytes.
#[derive(Default)]
struct Roll {
    hash: u64,
    window: VecDeque<u8>,
}

impl Roll {
    /// Adds a byte. Returns the hash of the window once it is full.
    fn push(&mut self, byte: u8) -> Option<u64> {
        const OLDEST: u64 = {
            let (mut power, mut times) = (1_u64, 0);
            while times < ECHO_BYTES {
                power = power.wrapping_mul(FACTOR);
                times += 1;
            }
            power
        };
        self.hash = self.hash.wrapping_mul(FACTOR).wrapping_add(u64::from(byte) + 1);
        self.window.push_back(byte);
        if self.window.len() > ECHO_BYTES
            && let Some(oldest) = self.window.pop_front()
        {
            self.hash = self.hash.wrapping_sub(OLDEST.wrapping_mul(u64::from(oldest) + 1));
        }
        (self.window.len() == ECHO_BYTES).then_some(self.hash)
    }
}

/// A byte of a text without escapes and repeated white space.
struct FlatByte {
    value: u8,
    /// The part of the text that it comes from.
    start: usize,
    end: usize,
}

/// Reads a text without escapes, and with one space in place of each run of white space.
struct Flat<'a> {
    text: &'a [u8],
    at: usize,
    /// The rest of the last character, in reverse order.
    rest: Vec<u8>,
    /// The part of the text that the last character comes from.
    last: (usize, usize),
}

/// A character, an escape, or backslashes before a character that needs no escape.
enum Unit {
    Byte(u8),
    Escaped(char),
    Backslashes,
}

impl<'a> Flat<'a> {
    fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0, rest: Vec::new(), last: (0, 0) }
    }

    /// Reads the unit at a position. Returns it with its end.
    fn unit(&self, at: usize) -> Option<(Unit, usize)> {
        let byte = *self.text.get(at)?;
        if byte.is_ascii_whitespace() {
            return Some((Unit::Byte(b' '), at + 1));
        }
        if byte != b'\\' {
            return Some((Unit::Byte(byte), at + 1));
        }
        let end = self.after_backslashes(at);
        Some(match self.text.get(end) {
            Some(b'n' | b'r' | b't' | b'b' | b'f') => (Unit::Byte(b' '), end + 1),
            Some(b'u') => match self.escaped(end) {
                Some((character, end)) => (Unit::Escaped(character), end),
                None => (Unit::Backslashes, end),
            },
            _ => (Unit::Backslashes, end),
        })
    }

    fn after_backslashes(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        at + rest.iter().take_while(|byte| **byte == b'\\').count()
    }

    /// Reads the character of an escape whose `u` is at a position, or of a pair of surrogates. Returns it with its end.
    fn escaped(&self, at: usize) -> Option<(char, usize)> {
        let first = self.code(at)?;
        let end = at + 5;
        if let Some(character) = char::from_u32(first) {
            return Some((character, end));
        }
        let next = self.after_backslashes(end);
        let second = self.code(next).filter(|_| self.text.get(next) == Some(&b'u'))?;
        let code = [first, second].map(|code| u16::try_from(code).unwrap_or_default());
        let character = char::decode_utf16(code).next()?.ok()?;
        Some((character, next + 5))
    }

    /// Reads the four hexadecimal digits after a position.
    fn code(&self, at: usize) -> Option<u32> {
        let digits = self.text.get(at + 1..at + 5)?;
        digits.iter().try_fold(0, |code, digit| Some(code * 16 + char::from(*digit).to_digit(16)?))
    }
}

impl Iterator for Flat<'_> {
    type Item = FlatByte;

    fn next(&mut self) -> Option<FlatByte> {
        let start = self.at;
        while self.rest.is_empty() {
            let (unit, end) = self.unit(self.at)?;
            self.at = end;
            match unit {
                Unit::Backslashes => {}
                Unit::Byte(byte) => self.rest.push(byte),
                Unit::Escaped(character) => {
                    let mut bytes = [0; 4];
                    self.rest.extend(character.encode_utf8(&mut bytes).bytes().rev());
                }
            }
            if self.rest == b" " {
                while let Some((Unit::Byte(b' '), end)) = self.unit(self.at) {
                    self.at = end;
                }
            }
            self.last = (start, self.at);
        }
        let (start, end) = self.last;
        self.rest.pop().map(|value| FlatByte { value, start, end })
    }
}
