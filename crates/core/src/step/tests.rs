//! The step: every example of the two reference pages this design starts from ("Step Processing",
//! "Finishing Agents"), and the rules in which this framework differs from them.
//!
//! Examples that contradict the page they stand on, or a rule of ours, are tested in this form:
//!
//! | example | what is wrong with it | tested as |
//! |---|---|---|
//! | "detects `__finish__` tool", called without an output schema | `__finish__` exists only with one | without a schema any arguments are the output, as it says |
//! | "excludes `__finish__` from pending tools" with arguments `{}` | no output type would accept that `search` beside it is dropped without an answer | nothing is pending, and the machine answers `search` "not run" |
//! | `approve_with_comments` returns `{status, comments}`, its agent's output makes `comments` and `reason` optional, and both finish tools are said to have run | holds as it stands; only the *output* of the second is dropped | first in call order gives the output, both run |
//! | `submit_answer` returns `{result, submittedAt}` and the integration test expects `{result}` | the result would have a member more | the tool returns `{result}` |
//! | `finishWithTransform` example whose transform reads `output.valid` of a tool without an output schema | holds as it stands | the transform fails, the run fails |
//! | integration test whose mock's reply has no `subAgentCalls` | the type requires them | with an empty list |
//! | output of `__finish__` that does not fit is "passed through with a warning" | ours never is | error result, correction, `output_invalid` |
//! | `determineFinalStatus`: the list omits `unknown`, the LLM page says it fails | the pages differ | it fails |
//! | the prompt section's wording | ours says the same in other words | heading, tool names, and the snapshot of our words |

mod abort;
mod at_most_once;
mod calls;
mod completion;
mod examples;
mod finish_tools;
mod limits;
mod messages;
mod native;
mod output;
mod plan;
mod prompt;
mod properties;
mod stop;
