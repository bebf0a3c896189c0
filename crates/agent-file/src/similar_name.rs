//! Suggestions for mistyped names.

/// The minimum similarity of a suggestion.
const NEAR: f64 = 0.75;

/// The known name that is most similar to the given one, if any is similar enough.
pub fn near<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_lowercase().replace('-', "_");
    let near = known
        .map(|name| (strsim::jaro_winkler(&given, name), name))
        .filter(|(similarity, _)| *similarity >= NEAR)
        .max_by(|(one, _), (other, _)| one.total_cmp(other));
    near.map(|(_, name)| name)
}

#[cfg(test)]
mod tests;
