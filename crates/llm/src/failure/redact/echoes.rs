//! Parts of a provider's message that quote the conversation.

use std::collections::{HashMap, HashSet, VecDeque};

/// The minimum length at which text that the message shares with the conversation counts as a
/// quote.
const ECHO_BYTES: usize = 16;

/// The factor of the rolling hash. Any large odd number serves.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// Returns which bytes of the text occur in the conversation, which is JSON.
///
/// White space and the escapes of JSON strings make no difference: a provider may quote several lines
/// with real line breaks, with `\n`, or on one line. The conversation is read once, whatever the length of the
/// text.
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
    // Nearly every window of the conversation is dismissed by its first bits.
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

/// Reads a text without the escapes of JSON strings, and with a space in place of any white space.
struct Flat<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Flat<'a> {
    fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// Reads one byte or one escape. Returns the byte and the number of bytes that were read.
    fn unit(&self) -> Option<(u8, usize)> {
        let byte = *self.text.get(self.at)?;
        let escaped = self.text.get(self.at + 1).filter(|_| byte == b'\\');
        Some(match escaped {
            Some(b'n' | b'r' | b't') => (b' ', 2),
            Some(b'"') => (b'"', 2),
            Some(b'\\') => (b'\\', 2),
            Some(b'/') => (b'/', 2),
            _ if byte.is_ascii_whitespace() => (b' ', 1),
            _ => (byte, 1),
        })
    }
}

impl Iterator for Flat<'_> {
    type Item = FlatByte;

    fn next(&mut self) -> Option<FlatByte> {
        let start = self.at;
        let (value, length) = self.unit()?;
        self.at += length;
        while value == b' '
            && let Some((b' ', length)) = self.unit()
        {
            self.at += length;
        }
        Some(FlatByte { value, start, end: self.at })
    }
}
