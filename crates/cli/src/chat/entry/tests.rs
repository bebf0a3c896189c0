//! What is a message, and what a command.

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
fn what_is_no_command_is_told_what_could_be_meant() {
    let told = |typed| match Entry::of(typed) {
        Entry::Unknown(told) => told,
        entry => panic!("{entry:?}"),
    };
    assert_eq!(told("/resmue"), "there is no command /resmue; did you mean /resume?");
    assert_eq!(told("/hlep x"), "there is no command /hlep; did you mean /help?");
    assert!(told("/dance").contains("/help lists them"));
    assert_eq!(told("/log all"), "/log takes nothing behind it");
}

#[test]
fn a_beginning_is_completed() {
    assert_eq!(completions("/s"), ["/sessions", "/state"]);
    assert!(completions("hello").is_empty());
}
