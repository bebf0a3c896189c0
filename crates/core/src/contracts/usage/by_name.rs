//! A map of usage by name that is cheap to copy.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Index;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Usage by the name of its source, sorted by name.
///
/// The entries are in a sorted vector that is copied on write. The totals of a
/// session are cloned with each step, and most sessions use only a few models and tools.
///
/// # Examples
///
/// ```
/// use helix_agents_core::usage::{ToolUsage, UsageByName};
///
/// let mut tools = UsageByName::<ToolUsage>::default();
/// tools.get_or_default("search".into()).calls += 1;
/// assert_eq!(tools["search"].calls, 1);
/// assert_eq!(tools.get("fetch"), None);
/// ```
#[derive(Clone)]
#[expect(clippy::rc_buffer, reason = "a vector that is not shared grows in place")]
pub struct UsageByName<V>(Option<Arc<Vec<Entry<V>>>>);

type Entry<V> = (Arc<str>, V);

impl<V> UsageByName<V> {
    /// Creates an empty map.
    #[must_use]
    pub const fn new() -> Self {
        Self(None)
    }

    /// Returns the number of names.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries().len()
    }

    /// Returns `true` if there are no names.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries().is_empty()
    }

    /// Returns the usage under this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&V> {
        let index = self.find(name).ok()?;
        self.entries().get(index).map(|(_, used)| used)
    }

    /// Returns the usage under this name. A missing name is inserted with the default.
    pub fn get_or_default(&mut self, name: Arc<str>) -> &mut V
    where
        V: Default + Clone,
    {
        let found = self.find(&name);
        // A vector that is not shared is changed in place.
        let entries = Arc::make_mut(self.0.get_or_insert_default());
        let index = found.unwrap_or_else(|index| {
            if entries.len() < 4 {
                // Most maps never have more than one name.
                entries.reserve_exact(1);
            }
            entries.insert(index, (name, V::default()));
            index
        });
        #[expect(clippy::indexing_slicing, reason = "the index was found or inserted above")]
        let (_, used) = &mut entries[index];
        used
    }

    /// Returns the names with their usage, sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Arc<str>, &V)> {
        self.entries().iter().map(|(name, used)| (name, used))
    }

    /// Returns the names in order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &Arc<str>> {
        self.entries().iter().map(|(name, _)| name)
    }

    /// Returns the usage of each name, sorted by name.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &V> {
        self.entries().iter().map(|(_, used)| used)
    }

    /// Returns the usage of each name, sorted by name.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V>
    where
        V: Clone,
    {
        self.0.as_mut().map(Arc::make_mut).into_iter().flatten().map(|(_, used)| used)
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        self.entries().binary_search_by(|(other, _)| (**other).cmp(name))
    }

    fn from_sorted(entries: BTreeMap<Arc<str>, V>) -> Self {
        Self((!entries.is_empty()).then(|| Arc::new(entries.into_iter().collect())))
    }

    fn entries(&self) -> &[Entry<V>] {
        self.0.as_deref().map(Vec::as_slice).unwrap_or_default()
    }
}

impl<V: PartialEq> PartialEq for UsageByName<V> {
    fn eq(&self, other: &Self) -> bool {
        self.entries() == other.entries()
    }
}

impl<V> Default for UsageByName<V> {
    fn default() -> Self {
        Self::new()
    }
}

/// # Panics
/// Panics if the name is missing.
impl<V> Index<&str> for UsageByName<V> {
    type Output = V;

    fn index(&self, name: &str) -> &V {
        #[expect(clippy::expect_used, reason = "indexing panics, as for the maps of std")]
        self.get(name).expect("no usage under this name")
    }
}

impl<V> FromIterator<(Arc<str>, V)> for UsageByName<V> {
    /// If a name occurs more than once, the last one counts.
    fn from_iter<I: IntoIterator<Item = (Arc<str>, V)>>(entries: I) -> Self {
        Self::from_sorted(entries.into_iter().collect())
    }
}

impl<V, const N: usize> From<[(Arc<str>, V); N]> for UsageByName<V> {
    fn from(entries: [(Arc<str>, V); N]) -> Self {
        entries.into_iter().collect()
    }
}

impl<V: fmt::Debug> fmt::Debug for UsageByName<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<V: Serialize> Serialize for UsageByName<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for UsageByName<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let entries = BTreeMap::<Arc<str>, V>::deserialize(deserializer)?;
        Ok(Self::from_sorted(entries))
    }
}

#[cfg(test)]
mod tests;
