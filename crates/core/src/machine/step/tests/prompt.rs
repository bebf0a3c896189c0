//! The prompt section that tells the model how to return the output.

use expect_test::{Expect, expect};

use crate::agent::Completion;
use crate::step::output_requirement;

fn check(completion: &Completion, has_output: bool, expected: &Expect) {
    expected.assert_eq(&output_requirement(completion, has_output).unwrap());
}

fn finish_tools(names: &[&str]) -> Completion {
    Completion::FinishTools(names.iter().map(|name| (*name).into()).collect())
}

#[test]
fn finish_is_named_for_an_agent_that_completes_by_it() {
    check(
        &Completion::Finish,
        true,
        &expect![[r#"
        ## Output Requirement

        This task ends with structured output. Hand it in by calling the `__finish__` tool: that is the only way to complete the task. An answer given as plain text does not count."#]],
    );
}

#[test]
fn the_finish_tool_is_named_for_an_agent_that_has_one() {
    check(
        &finish_tools(&["submit_answer"]),
        true,
        &expect![[r#"
        ## Output Requirement

        This task ends with structured output. Hand it in by calling the `submit_answer` tool: that is the only way to complete the task. An answer given as plain text does not count."#]],
    );
}

#[test]
fn several_finish_tools_are_named_as_one_of_them() {
    let text = output_requirement(&finish_tools(&["approve_with_comments", "reject"]), true);
    let text = text.unwrap();
    assert!(text.starts_with("## Output Requirement\n\n"), "{text}");
    assert!(text.contains("by calling one of `approve_with_comments`, `reject`:"), "{text}");
}

#[test]
fn a_native_output_is_requested_without_a_tool() {
    check(
        &Completion::Native,
        true,
        &expect![[r#"
        ## Output Requirement

        The final answer has to be one JSON value that fits the given schema, without any text around it."#]],
    );
}

#[test]
fn an_agent_without_an_output_type_has_no_such_section() {
    assert_eq!(output_requirement(&Completion::Text, false), None);
    assert_eq!(output_requirement(&finish_tools(&["submit"]), false), None);
}
