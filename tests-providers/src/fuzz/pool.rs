//! The material of mutations: keys, values and units of all recorded replies of a wire format.

use super::body::{Body, Framing, Unit};
use super::tree::Tree;

/// The maximum number of values and units. Further ones are similar.
const MAX_ENTRIES: usize = 10_000;

/// The maximum number of nodes of a value.
const MAX_NODES: usize = 50;

#[derive(Debug, Default)]
pub(crate) struct Pool {
    pub(crate) keys: Vec<String>,
    pub(crate) values: Vec<Tree>,
    units: Vec<(Framing, Unit)>,
}

impl Pool {
    pub(crate) fn of<'a>(bodies: impl IntoIterator<Item = &'a Body>) -> Self {
        let mut pool = Self::default();
        for body in bodies {
            for unit in &body.units {
                if let Some(tree) = Tree::parse(&unit.data) {
                    tree.members(&mut |key, value| pool.add(key, value));
                }
                if pool.units.len() < MAX_ENTRIES {
                    pool.units.push((body.framing, unit.clone()));
                }
            }
        }
        pool
    }

    fn add(&mut self, key: &str, value: &Tree) {
        if !self.keys.iter().any(|known| known == key) && self.keys.len() < MAX_ENTRIES {
            self.keys.push(key.to_owned());
        }
        if self.values.len() < MAX_ENTRIES && value.size() <= MAX_NODES {
            self.values.push(value.clone());
        }
    }

    /// Returns the units with this framing.
    pub(crate) fn units(&self, framing: Framing) -> Vec<&Unit> {
        let units = self.units.iter().filter(|(of, _)| *of == framing);
        units.map(|(_, unit)| unit).collect()
    }
}
