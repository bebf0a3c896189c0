//! Estimates the cost of validating a value against a recursive schema. If two parts of the schema
//! describe the same value, and so do two parts of each of them, the cost doubles with each nesting
//! level of the value.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::check::{SAME_VALUE, SAME_VALUE_LISTS, SAME_VALUE_NAMED, parts, target};

/// A weight greater than that of any value.
pub(super) const ENDLESS: u64 = u64::MAX;

/// The maximum nesting depth of schemas and values while weighing, and of pairs of both.
const MAX_DEPTH: usize = 512;
const MAX_PAIRS: usize = 500_000;

/// Returns the number of schema checks of a validator that checks every part that applies to the
/// value, once per path. Each path is counted, but each pair of a schema and a value is visited
/// only once.
pub(super) fn weigh(schema: &Value, value: &Value) -> u64 {
    Scales { root: schema, weights: HashMap::new() }.weigh(schema, value, 0)
}

struct Scales<'a> {
    root: &'a Value,
    /// The computed weights, by the addresses of schema and value.
    weights: HashMap<(*const Value, *const Value), u64>,
}

impl<'a> Scales<'a> {
    fn weigh(&mut self, schema: &'a Value, value: &'a Value, depth: usize) -> u64 {
        let Value::Object(members) = schema else { return 1 };
        let pair = (std::ptr::from_ref(schema), std::ptr::from_ref(value));
        if let Some(weight) = self.weights.get(&pair) {
            return *weight;
        }
        if depth > MAX_DEPTH || self.weights.len() > MAX_PAIRS {
            return ENDLESS;
        }
        self.weights.insert(pair, ENDLESS);
        let weight = self.weigh_parts(members, value, depth + 1);
        self.weights.insert(pair, weight);
        weight
    }

    fn weigh_parts(
        &mut self,
        members: &'a Map<String, Value>,
        value: &'a Value,
        depth: usize,
    ) -> u64 {
        let mut weight = 1_u64;
        let mut add = |scales: &mut Self, schema, value| {
            weight = weight.saturating_add(scales.weigh(schema, value, depth));
        };
        if let Some(Value::String(reference)) = members.get("$ref")
            && let Ok(Some(target)) = target(self.root, reference)
        {
            add(self, target, value);
        }
        for (key, part) in parts(members) {
            match key {
                _ if SAME_VALUE.contains(&key) => add(self, part, value),
                _ if SAME_VALUE_LISTS.contains(&key) || SAME_VALUE_NAMED.contains(&key) => {
                    schemas(part).for_each(|part| add(self, part, value));
                }
                "properties" => {
                    for (name, part) in part.as_object().into_iter().flatten() {
                        if let Some(member) = value.get(name) {
                            add(self, part, member);
                        }
                    }
                }
                "propertyNames" => {
                    let names = value.as_object().map_or(0, Map::len);
                    (0..names).for_each(|_| add(self, part, &Value::Null));
                }
                "patternProperties" => {
                    for part in schemas(part) {
                        members_of(value).for_each(|member| add(self, part, member));
                    }
                }
                "additionalProperties" | "unevaluatedProperties" => {
                    members_of(value).for_each(|member| add(self, part, member));
                }
                "items" | "prefixItems" if part.is_array() => {
                    schemas(part)
                        .zip(items_of(value))
                        .for_each(|(part, item)| add(self, part, item));
                }
                "items" | "additionalItems" | "unevaluatedItems" | "contains" => {
                    items_of(value).for_each(|item| add(self, part, item));
                }
                _ => {}
            }
        }
        // Finding the unevaluated members requires checking all adjacent keywords again.
        let twice = ["unevaluatedItems", "unevaluatedProperties"];
        let twice = twice.iter().any(|key| members.contains_key(*key));
        if twice { weight.saturating_mul(2) } else { weight }
    }
}

/// Returns the schemas in a list or map.
fn schemas(part: &Value) -> impl Iterator<Item = &Value> {
    items_of(part).chain(members_of(part))
}

fn items_of(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn members_of(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_object().into_iter().flat_map(Map::values)
}

#[cfg(test)]
mod tests;
