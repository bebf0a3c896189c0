//! The conversation of APIs in which a message is a role and a list of parts.

use std::borrow::Cow;

/// An encoded message: its role, and its parts separated by commas.
pub(crate) type EncodedMessage<'a> = (&'static str, Cow<'a, [u8]>);

/// Writes the messages. Successive messages of one role become one message, because such an API rejects or merges them.
/// `list` is the member with the parts. `end` is called with the index of each message after its parts.
pub(crate) fn write(
    messages: &[EncodedMessage<'_>],
    list: &str,
    end: impl Fn(usize, &mut Vec<u8>),
    out: &mut Vec<u8>,
) {
    let mut open = None;
    out.push(b'[');
    for (index, (role, parts)) in messages.iter().enumerate() {
        if open == Some(role) {
            out.push(b',');
        } else {
            if open.replace(role).is_some() {
                out.extend_from_slice(b"]},");
            }
            out.extend_from_slice(b"{\"role\":\"");
            out.extend_from_slice(role.as_bytes());
            out.extend_from_slice(b"\",\"");
            out.extend_from_slice(list.as_bytes());
            out.extend_from_slice(b"\":[");
        }
        out.extend_from_slice(parts);
        end(index, out);
    }
    if open.is_some() {
        out.extend_from_slice(b"]}");
    }
    out.push(b']');
}
