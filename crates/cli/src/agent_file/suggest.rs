//! What somebody who mistyped a key may have meant.

/// The similarity from which on a guess helps.
const NEAR: f64 = 0.75;

/// What to say after an unknown key: the one that is near, or all there are.
pub(super) fn hint<'a>(given: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let given = given.to_lowercase().replace('-', "_");
    let near = known
        .clone()
        .map(|key| (strsim::jaro_winkler(&given, key), key))
        .filter(|(similarity, _)| *similarity >= NEAR)
        .max_by(|(one, _), (other, _)| one.total_cmp(other));
    match near {
        Some((_, key)) => format!("did you mean `{key}`?"),
        None => match known.map(|key| format!("`{key}`")).collect::<Vec<_>>() {
            keys if keys.is_empty() => "nothing may stand here".to_owned(),
            keys => format!("there are {}", keys.join(", ")),
        },
    }
}

#[cfg(test)]
mod tests;
