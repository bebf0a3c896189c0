//! Tests of notes, their limits and their place in the system prompt.

use serde_json::json;

use super::{Action, Change, NoteTool, Notes};

const CONFIG: NoteTool = NoteTool { max_notes: 2, max_chars: 10 };

fn write(notes: &mut Notes, title: &str, text: &str) -> Result<Vec<String>, String> {
    change(notes, Action::Write, title, text)
}

fn change(
    notes: &mut Notes,
    action: Action,
    title: &str,
    text: &str,
) -> Result<Vec<String>, String> {
    let change = Change { action, title: title.to_owned(), text: text.to_owned() };
    match CONFIG.apply(&change, notes) {
        Ok(noted) => Ok(noted.titles),
        Err(error) => Err(error.message().to_owned()),
    }
}

#[test]
fn notes_are_written_replaced_and_removed() {
    let mut notes = Notes::default();
    assert_eq!(write(&mut notes, "b", "one").unwrap(), ["b"]);
    assert_eq!(write(&mut notes, " a  name ", "two").unwrap(), ["a name", "b"]);
    assert_eq!(write(&mut notes, "b", "three\nlines").unwrap_err(), TOO_LONG);
    assert_eq!(write(&mut notes, "b", "3\n4").unwrap(), ["a name", "b"]);
    assert_eq!(
        notes.shown_in("Be kind."),
        "Be kind.\n\nYour notes from this session:\n- a name: two\n- b: 3\n  4"
    );
    assert_eq!(change(&mut notes, Action::Remove, "b", "").unwrap(), ["a name"]);
    let error = change(&mut notes, Action::Remove, "b", "").unwrap_err();
    assert_eq!(error, "there is no note `b`; the notes are: [a name]");
}

const TOO_LONG: &str = "the note has 11 characters; shorten it to 10";

#[test]
fn the_number_of_notes_is_limited() {
    let mut notes = Notes::default();
    write(&mut notes, "a", "1").unwrap();
    write(&mut notes, "b", "2").unwrap();
    let error = write(&mut notes, "c", "3").unwrap_err();
    assert_eq!(error, "there are 2 notes already; remove or replace one of: a, b");
    assert_eq!(write(&mut notes, "a", "new").unwrap(), ["a", "b"]);
    assert!(write(&mut notes, "a", "  ").unwrap_err().contains("`text` is empty"));
    assert!(write(&mut notes, " ", "x").unwrap_err().contains("title is empty"));
}

#[test]
fn without_notes_the_prompt_is_unchanged() {
    assert_eq!(Notes::default().shown_in("Be kind."), "Be kind.");
}

#[test]
fn a_session_created_without_notes_has_none() {
    for state in [json!(null), json!({}), json!({ "notes": {} })] {
        assert_eq!(serde_json::from_value::<Notes>(state).unwrap(), Notes::default());
    }
    assert!(serde_json::from_value::<Notes>(json!({ "notes": 3 })).is_err());
}
