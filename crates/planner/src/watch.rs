//! Watches a plan while it is streamed, to detect when the rest of it cannot matter.

/// The name of the member that contains the decision.
const KEY: &str = "next_action";

/// The maximum length of a relevant string in its JSON form, where every character may be escaped.
const MAX_CHARS: usize = 6 * KEY.len();

/// The position of the watch in the plan's object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Place {
    /// Before the object.
    #[default]
    Before,
    /// Before a member's name or the object's end.
    Name,
    /// After a member's name.
    Colon,
    /// At the start of a member's value.
    Value,
    /// In or after a value that is not relevant.
    Within,
    /// At the end: nothing after it is relevant.
    Over,
}

/// Reads the top level of a plan piece by piece.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    place: Place,
    depth: u32,
    /// The string that is being read, as written.
    string: Option<String>,
    escaped: bool,
    /// Whether the current value is that of the member that contains the decision.
    decides: bool,
    responds: bool,
}

impl Watch {
    /// Reads the next piece. Returns `true` if the plan certainly says `response`, because the
    /// closing quote was read.
    pub(crate) fn feed(&mut self, piece: &str) -> bool {
        for letter in piece.chars() {
            if self.place == Place::Over {
                break;
            }
            self.letter(letter);
        }
        self.responds
    }

    fn letter(&mut self, letter: char) {
        if self.string.is_some() {
            self.in_string(letter);
            return;
        }
        match (self.place, letter) {
            (Place::Before, '{') => self.place = Place::Name,
            (Place::Before, _) => {}
            (_, letter) if letter.is_ascii_whitespace() => {}
            (Place::Name, '"') | (Place::Value | Place::Within, '"') => {
                self.string = Some(String::new());
            }
            (Place::Colon, ':') => self.place = Place::Value,
            (Place::Value | Place::Within, _) => self.value(letter),
            _ => self.place = Place::Over,
        }
    }

    fn value(&mut self, letter: char) {
        self.place = Place::Within;
        match letter {
            '{' | '[' => self.depth = self.depth.saturating_add(1),
            '}' | ']' if self.depth == 0 => self.place = Place::Over,
            '}' | ']' => self.depth -= 1,
            ',' if self.depth == 0 => self.place = Place::Name,
            _ => {}
        }
    }

    fn in_string(&mut self, letter: char) {
        let Some(string) = &mut self.string else { return };
        if letter != '"' || self.escaped {
            self.escaped = letter == '\\' && !self.escaped;
            if string.len() <= MAX_CHARS {
                string.push(letter);
            }
            return;
        }
        let text = format!("\"{string}\"");
        self.string = None;
        let text: Option<String> = serde_json::from_str(&text).ok();
        match self.place {
            Place::Name => {
                self.decides = text.as_deref() == Some(KEY);
                self.place = Place::Colon;
            }
            Place::Value => {
                let responds = text.is_some_and(|text| text.to_lowercase() == "response");
                self.responds = self.decides && responds;
                self.place = if self.decides { Place::Over } else { Place::Within };
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
