//! Tests of the details of events.

use super::*;
use crate::error::{ErrorCode, ErrorRecord};
use crate::event::Trigger;

#[test]
fn the_details_of_a_run_name_its_trigger_and_its_outcome() {
    let ended = |outcome| Event::RunEnded { outcome }.details();
    let error = ErrorRecord::new(ErrorCode::ProviderTimeout, "no reply").with_detail("after 30 s");
    assert_eq!(
        ended(RunOutcome::Failed { error }),
        "failed provider_timeout: no reply: after 30 s"
    );
    assert_eq!(ended(RunOutcome::Completed { output: None }).trim_end(), "completed");
    let reason = Some("Ctrl-C".to_owned());
    assert_eq!(ended(RunOutcome::Interrupted { reason }), "interrupted Ctrl-C");
    assert_eq!(word(&Trigger::Resume), "resume");
}

#[test]
fn the_details_of_an_answer_name_who_gave_it() {
    let submitted = |answer, by: Option<&str>| {
        let (request, call) = ("r".into(), "1.0".into());
        Event::Submitted { request, call, answer, by: by.map(str::to_owned), trace: None }.details()
    };
    assert_eq!(submitted(Answer::Approved { edited: None }, Some("ann")), "1.0 approved by ann");
    let reason = Some("too expensive".to_owned());
    assert_eq!(submitted(Answer::Denied { reason }, None), "1.0 denied too expensive");
    assert_eq!(submitted(Answer::Denied { reason: None }, None), "1.0 denied");
}

#[test]
fn numbers_of_messages_are_in_words() {
    assert_eq!([messages(1), messages(2)], ["1 message", "2 messages"]);
}
