//! Tests of steps. They cover every example of the two reference pages that this design is based on
//! ("Step Processing", "Finishing Agents"), and the rules in which this framework differs from
//! them.
//!
//! Examples that contradict themselves, each other, or a rule of this framework are tested in this
//! form:
//!
//! | example | what is wrong with it | tested as |
//! |---|---|---|
//! | "detects `__finish__` tool", without an output schema | `__finish__` exists only with one | the plan takes any arguments as the output; an agent without an output type answers `tool_unknown` |
//! | "excludes `__finish__` from pending tools", with arguments `{}` | `search` in the same reply is dropped without an answer | nothing is pending, and the machine answers `search` "not run" |
//! | `approve_with_comments` and `reject` in parallel | "by array order" and "first in tool order" are two rules | the first in call order wins, whichever tool was defined first |
//! | `submit_answer`, which returns `{result, submittedAt}` | the integration test expects `{result}` | the tool returns `{result}` |
//! | `submit`, whose transform throws | a tool without description and input schema is rejected | with both |
//! | replies of the integration test, without `subAgentCalls` and `stopReason` | the types require them | with both |
//! | an output that does not fit is passed through with a warning | this framework never does that | error result, correction, `output_invalid` |
//! | a text reply that stops, from an agent with an output schema, completes | it has no output | it is corrected |
//! | the list of failing stop reasons has no `unknown` | the page on models states that it fails | it fails |
//! | `determineFinalStatus`, `max_tokens` fails | "see note": it is retried with an output schema | failed as a status, corrected by the machine |
//! | the wording of the prompt's section | this framework uses other words | heading, tool names, and a snapshot of the section |

mod abort;
mod at_most_once;
mod budget;
mod calls;
mod complete_example;
mod completion;
mod crash_loop;
mod examples;
mod finish_tools;
mod limits;
mod messages;
mod native;
mod output;
mod paused;
mod people;
mod plan;
mod prompt;
mod properties;
mod results;
mod stop;
