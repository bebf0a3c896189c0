//! Bounds the size of usage data: totals stay exact, and rare names are merged.

use std::borrow::Cow;
use std::ops::AddAssign;
use std::sync::Arc;

use super::by_name::UsageByName;
use super::rollup::{UsageRollup, add_amount};

/// The name under which usage is merged if the maximum number of names is reached.
pub const OTHER_NAMES: &str = "(others)";

/// The maximum number of names of each kind (models, tools, sub-agents, custom sources) in the
/// usage that a store keeps for one session.
pub const MAX_SESSION_SOURCES: usize = 250;

/// The maximum length of a name in the usage that a store keeps, in bytes. Longer names are
/// truncated.
pub const MAX_SOURCE_BYTES: usize = 256;

impl UsageRollup {
    /// Returns the same usage with at most [`MAX_SESSION_SOURCES`] names of each kind, none longer
    /// than [`MAX_SOURCE_BYTES`]. The remaining usage is merged under [`OTHER_NAMES`], so all totals
    /// stay the same.
    #[must_use]
    pub fn bounded(&self) -> Self {
        if self.is_bounded() {
            return self.clone();
        }
        let mut bounded = Self::default();
        bounded.add_up_to(self, MAX_SESSION_SOURCES);
        bounded
    }

    fn is_bounded(&self) -> bool {
        fn fits<T>(names: &UsageByName<T>) -> bool {
            names.len() <= MAX_SESSION_SOURCES
                && names.names().all(|name| name.len() <= MAX_SOURCE_BYTES)
        }
        fits(&self.models)
            && fits(&self.tools)
            && fits(&self.sub_agents)
            && fits(&self.custom)
            && self.custom.values().all(fits)
            && count(&self.custom) <= MAX_SESSION_SOURCES
    }

    /// Adds other usage. New names of a kind that already has `most` names are merged under
    /// [`OTHER_NAMES`].
    pub(crate) fn add_up_to(&mut self, other: &Self, most: usize) {
        self.tokens += other.tokens;
        self.steps = self.steps.saturating_add(other.steps);
        self.tool_calls = self.tool_calls.saturating_add(other.tool_calls);
        self.cost += other.cost;
        add_each(&mut self.models, &other.models, most);
        add_each(&mut self.tools, &other.tools, most);
        add_each(&mut self.sub_agents, &other.sub_agents, most);
        for (source_type, names) in other.custom.iter() {
            for (name, amount) in names.iter() {
                let amount_of = |to: &mut f64| add_amount(to, *amount);
                place(&mut self.custom, source_type, name, most, amount_of);
            }
        }
        for (source_type, names) in other.custom_records.iter() {
            for (name, records) in names.iter() {
                place(&mut self.custom_records, source_type, name, most, |to| *to += *records);
            }
        }
    }
}

type ByTypeAndName<T> = UsageByName<UsageByName<T>>;

fn count<T>(sources: &ByTypeAndName<T>) -> usize {
    sources.values().map(UsageByName::len).sum()
}

fn add_each<T: Copy + Default + AddAssign>(
    to: &mut UsageByName<T>,
    from: &UsageByName<T>,
    most: usize,
) {
    for (name, more) in from.iter() {
        let name = cut(name, most);
        let has_place = to.get(&name).is_some() || to.len() < most.saturating_sub(1);
        let name = if has_place { name.into_owned() } else { OTHER_NAMES.into() };
        *to.get_or_default(name) += *more;
    }
}

/// Adds to the named source, or to [`OTHER_NAMES`].
fn place<T: Clone + Default>(
    to: &mut ByTypeAndName<T>,
    source_type: &Arc<str>,
    name: &Arc<str>,
    most: usize,
    add: impl FnOnce(&mut T),
) {
    let (source_type, name) = (cut(source_type, most), cut(name, most));
    let is_there = to.get(&source_type).is_some_and(|names| names.get(&name).is_some());
    let has_place = is_there || most == usize::MAX || count(to) < most.saturating_sub(1);
    let (source_type, name) = match has_place {
        true => (source_type.into_owned(), name.into_owned()),
        false => (OTHER_NAMES.into(), OTHER_NAMES.into()),
    };
    add(to.get_or_default(source_type).get_or_default(name));
}

/// Returns the name, truncated if it is too long and names are bounded.
fn cut(name: &Arc<str>, most: usize) -> Cow<'_, Arc<str>> {
    const MARK: &str = "…";
    if most == usize::MAX || name.len() <= MAX_SOURCE_BYTES {
        return Cow::Borrowed(name);
    }
    let end = name.floor_char_boundary(MAX_SOURCE_BYTES - MARK.len());
    let start = name.get(..end).unwrap_or_default();
    Cow::Owned(format!("{start}{MARK}").into())
}
