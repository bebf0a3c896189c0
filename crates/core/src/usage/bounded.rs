//! Usage of many names in bounded space: totals stay exact, rare names share one.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::sync::Arc;

use super::rollup::{UsageRollup, add_amount};

/// The name under which usage is added up whose own name found no place.
pub const OTHERS: &str = "(others)";

/// The most names of each kind (models, tools, sub-agents, custom sources) in the usage that a store
/// keeps of one session.
pub const MAX_SESSION_SOURCES: usize = 250;

/// The longest name in the usage that a store keeps, in bytes. Longer names are cut.
pub const MAX_SOURCE_BYTES: usize = 256;

impl UsageRollup {
    /// The same usage with at most [`MAX_SESSION_SOURCES`] names of each kind, none longer than
    /// [`MAX_SOURCE_BYTES`]. What finds no place is added up under [`OTHERS`], so all totals stay.
    #[must_use]
    pub fn bounded(self: &Arc<Self>) -> Arc<Self> {
        if self.is_bounded() {
            return Arc::clone(self);
        }
        let mut bounded = Self::default();
        bounded.add_up_to(self, MAX_SESSION_SOURCES);
        Arc::new(bounded)
    }

    fn is_bounded(&self) -> bool {
        fn fits<T>(names: &BTreeMap<Arc<str>, T>) -> bool {
            names.len() <= MAX_SESSION_SOURCES
                && names.keys().all(|name| name.len() <= MAX_SOURCE_BYTES)
        }
        fits(&self.models)
            && fits(&self.tools)
            && fits(&self.sub_agents)
            && fits(&self.custom)
            && self.custom.values().all(fits)
            && count(&self.custom) <= MAX_SESSION_SOURCES
    }

    /// Adds other usage. New names of a kind that has `most` already are added up under [`OTHERS`].
    pub(crate) fn add_up_to(&mut self, other: &Self, most: usize) {
        self.tokens += other.tokens;
        self.steps = self.steps.saturating_add(other.steps);
        self.tool_calls = self.tool_calls.saturating_add(other.tool_calls);
        self.cost += other.cost;
        add_each(&mut self.models, &other.models, most);
        add_each(&mut self.tools, &other.tools, most);
        add_each(&mut self.sub_agents, &other.sub_agents, most);
        for (source_type, names) in &other.custom {
            for (name, amount) in names {
                let amount_of = |to: &mut f64| add_amount(to, *amount);
                place(&mut self.custom, source_type, name, most, amount_of);
            }
        }
        for (source_type, names) in &other.custom_records {
            for (name, records) in names {
                place(&mut self.custom_records, source_type, name, most, |to| *to += *records);
            }
        }
    }
}

type ByTypeAndName<T> = BTreeMap<Arc<str>, BTreeMap<Arc<str>, T>>;

fn count<T>(sources: &ByTypeAndName<T>) -> usize {
    sources.values().map(BTreeMap::len).sum()
}

fn add_each<T: Copy + Default + AddAssign>(
    to: &mut BTreeMap<Arc<str>, T>,
    from: &BTreeMap<Arc<str>, T>,
    most: usize,
) {
    for (name, more) in from {
        let name = cut(name, most);
        let has_place = to.contains_key(&*name) || to.len() < most.saturating_sub(1);
        let name = if has_place { name.into_owned() } else { OTHERS.into() };
        *to.entry(name).or_default() += *more;
    }
}

/// Adds to a source, or to the one of all others.
fn place<T: Default>(
    to: &mut ByTypeAndName<T>,
    source_type: &Arc<str>,
    name: &Arc<str>,
    most: usize,
    add: impl FnOnce(&mut T),
) {
    let (source_type, name) = (cut(source_type, most), cut(name, most));
    let is_there = to.get(&*source_type).is_some_and(|names| names.contains_key(&*name));
    let has_place = is_there || most == usize::MAX || count(to) < most.saturating_sub(1);
    let (source_type, name) = match has_place {
        true => (source_type.into_owned(), name.into_owned()),
        false => (OTHERS.into(), OTHERS.into()),
    };
    add(to.entry(source_type).or_default().entry(name).or_default());
}

/// The name, or its beginning if it is too long where names are bounded at all.
fn cut(name: &Arc<str>, most: usize) -> Cow<'_, Arc<str>> {
    const MARK: &str = "…";
    if most == usize::MAX || name.len() <= MAX_SOURCE_BYTES {
        return Cow::Borrowed(name);
    }
    let end = name.floor_char_boundary(MAX_SOURCE_BYTES - MARK.len());
    let start = name.get(..end).unwrap_or_default();
    Cow::Owned(format!("{start}{MARK}").into())
}
