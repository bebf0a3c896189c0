//! The arguments of calls that are sent back.

use helix_agents_core::message::Arguments;

/// Returns arguments as the text of a JSON object. Servers reject or fail on a conversation with other arguments, so they
/// are left out: the result of such a call describes the problem.
pub(crate) fn object(arguments: &Arguments) -> &str {
    match arguments {
        Arguments::Json(json) if json.text().starts_with('{') => json.text(),
        Arguments::Json(_) | Arguments::Malformed(_) => "{}",
    }
}
