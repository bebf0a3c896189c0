//! Signatures of reasoning.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::Value;

/// Signs reasoning of a model of an account, with everything before it.
pub(super) fn sign(account: &str, model: &str, before: &[Value], text: &str) -> String {
    format!("{account}|{model}|{:x}|{:x}", hash(before), hash(text))
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Valid,
    /// The signature is that of another account, or the text is not the signed one.
    Forged,
    OtherModel,
    /// Something before the reasoning has changed.
    Moved,
}

/// Checks a signature.
pub(super) fn verify(
    (account, model): (&str, &str),
    before: &[Value],
    text: &str,
    signature: &str,
) -> Verdict {
    let expected = sign(account, model, before, text);
    let parts = |signature: &str| signature.split('|').map(str::to_owned).collect::<Vec<_>>();
    match (parts(signature).as_slice(), parts(&expected).as_slice()) {
        ([of, _, _, signed], [account, _, _, text]) if of != account || signed != text => {
            Verdict::Forged
        }
        ([_, of, ..], [_, model, ..]) if of != model => Verdict::OtherModel,
        ([_, _, moved, _], [_, _, before, _]) if moved != before => Verdict::Moved,
        ([_, _, _, _], _) => Verdict::Valid,
        _ => Verdict::Forged,
    }
}

fn hash<T: serde::Serialize + ?Sized>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    serde_json::to_string(value).unwrap().hash(&mut hasher);
    hasher.finish()
}
