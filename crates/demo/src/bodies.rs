//! The planets, dwarf planets and major moons in `data/solar-system.csv`.

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::de::value::{Error, StrDeserializer};
use serde::{Deserialize, Serialize};

/// All bodies, in the order of the file.
static BODIES: LazyLock<Vec<Body>> = LazyLock::new(|| {
    let file = include_str!("../data/solar-system.csv");
    file.lines().skip(1).filter_map(Body::read).collect()
});

/// What kind of body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum Kind {
    Planet,
    DwarfPlanet,
    Moon,
}

/// What bodies go around.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub(crate) enum Parent {
    #[default]
    #[serde(rename = "any")]
    Any,
    Sun,
    Earth,
    Mars,
    Jupiter,
    Saturn,
    Uranus,
    Neptune,
    Pluto,
    Eris,
}

/// What bodies can be compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum Property {
    Radius,
    Mass,
    Distance,
    Period,
}

/// A body. Values that are not well known are omitted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Body {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) parent: Parent,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) radius_km: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mass_kg: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) distance_km: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) period_days: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) discovered: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) discoverer: Option<&'static str>,
}

impl Body {
    /// Parses a line of the file.
    fn read(line: &'static str) -> Option<Self> {
        let mut cells = line.split(',').map(str::trim);
        let body = Self {
            name: cells.next()?,
            kind: Kind::deserialize(StrDeserializer::<Error>::new(cells.next()?)).ok()?,
            parent: Parent::deserialize(StrDeserializer::<Error>::new(cells.next()?)).ok()?,
            radius_km: number(cells.next()?)?,
            mass_kg: number(cells.next()?)?,
            distance_km: number(cells.next()?)?,
            period_days: number(cells.next()?)?,
            discovered: number(cells.next()?)?,
            discoverer: cells.next().filter(|cell| !cell.is_empty()),
        };
        cells.next().is_none().then_some(body)
    }

    /// The value of a property.
    pub(crate) fn value(&self, property: Property) -> Option<f64> {
        match property {
            Property::Radius => self.radius_km,
            Property::Mass => self.mass_kg,
            Property::Distance => self.distance_km,
            Property::Period => self.period_days,
        }
    }
}

impl Property {
    /// The unit of the property.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Self::Radius | Self::Distance => "km",
            Self::Mass => "kg",
            Self::Period => "days",
        }
    }
}

/// Parses a cell. Returns `Some(None)` for an empty cell and `None` for an invalid number.
#[expect(clippy::option_option, reason = "distinguishes an empty cell from an invalid one")]
fn number<T: std::str::FromStr>(cell: &str) -> Option<Option<T>> {
    if cell.is_empty() { Some(None) } else { cell.parse().ok().map(Some) }
}

/// All bodies.
pub(crate) fn all() -> &'static [Body] {
    &BODIES
}

/// Finds a body by its name, ignoring case.
pub(crate) fn find(name: &str) -> Option<&'static Body> {
    all().iter().find(|body| body.name.eq_ignore_ascii_case(name.trim()))
}

#[cfg(test)]
mod tests;
