//! Tests of how entries are parsed.

use super::*;

fn message(text: &str) -> Entry {
    Entry::Message(text.to_owned())
}

#[test]
fn everything_without_a_slash_is_a_message() {
    assert_eq!(Entry::of("  hello / there \n"), message("hello / there"));
    assert_eq!(Entry::of("two\nlines"), message("two\nlines"));
    assert_eq!(Entry::of(" \t\n"), Entry::Blank);
}

#[test]
fn two_slashes_and_several_lines_are_messages_too() {
    assert_eq!(Entry::of("//help is what?"), message("/help is what?"));
    assert_eq!(Entry::of("/etc/hosts\n127.0.0.1"), message("/etc/hosts\n127.0.0.1"));
}

#[test]
fn every_command_is_understood_and_in_the_help() {
    for Described(command, name, argument, _) in &COMMANDS {
        assert_eq!(Entry::of(name), Entry::Command(*command, None));
        assert!(help().contains(&format!("{name} {argument}")));
    }
    assert_eq!(Entry::of("/exit"), Entry::Command(Command::Quit, None));
    let resume = Entry::of("/resume  ses_1 ");
    assert_eq!(resume, Entry::Command(Command::Resume, Some("ses_1".to_owned())));
}

#[test]
fn unknown_commands_are_reported_with_a_suggestion() {
    let error = |typed| match Entry::of(typed) {
        Entry::Unknown(message) => message,
        entry => panic!("{entry:?}"),
    };
    assert_eq!(error("/resmue"), "unknown command /resmue; did you mean /resume?");
    assert_eq!(error("/hlep x"), "unknown command /hlep; did you mean /help?");
    assert!(error("/dance").contains("/help lists the commands"));
    assert_eq!(error("/log all"), "/log takes no argument");
}

#[test]
fn a_prefix_is_completed() {
    assert_eq!(completions("/s"), ["/sessions", "/state"]);
    assert!(completions("hello").is_empty());
}
