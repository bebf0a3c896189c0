//! The arguments of calls that are sent back.

use helix_agents_core::message::Arguments;

/// Returns arguments as the text of a JSON object. Other arguments, which servers reject or fail on, become an empty
/// object: the result of such a call describes the problem.
pub(crate) fn object(arguments: &Arguments) -> &str {
    match arguments {
        Arguments::Json(json) if json.text().starts_with('{') => json.text(),
        Arguments::Json(_) | Arguments::Malformed(_) => "{}",
    }
}
