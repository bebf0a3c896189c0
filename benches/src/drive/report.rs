//! Figures and their aims.

use std::fmt::Display;

use serde::Serialize;

use super::counter::Counter;

/// All measured figures.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// The method of counting instructions.
    pub(super) counter: Counter,
    pub(super) figures: Vec<Figure>,
}

/// One figure of one subject.
#[derive(Debug, Serialize)]
pub(super) struct Figure {
    /// The group and the name of the figure.
    pub(super) key: String,
    pub(super) subject: String,
    pub(super) value: f64,
    pub(super) unit: &'static str,
    /// The difference between the best and the worst repetition, relative to the value.
    pub(super) spread: Option<f64>,
    /// The ratio to the baseline of the same measurement, usually the bare loop.
    pub(super) ratio: Option<f64>,
    pub(super) aim: Option<Aim>,
}

/// The target of a figure.
#[derive(Debug, Serialize)]
pub(super) struct Aim {
    pub(super) text: String,
    pub(super) met: bool,
}

/// The best of several repetitions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Best {
    pub(super) value: f64,
    pub(super) spread: f64,
}

impl Best {
    /// Returns the smallest value.
    pub(super) fn least(values: impl IntoIterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.into_iter().collect();
        let (least, most) = (fold(&values, f64::min), fold(&values, f64::max));
        Self { value: least, spread: (most - least) / least }
    }

    /// Returns the largest value.
    pub(super) fn most(values: impl IntoIterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.into_iter().collect();
        let (least, most) = (fold(&values, f64::min), fold(&values, f64::max));
        Self { value: most, spread: (most - least) / most }
    }
}

fn fold(values: &[f64], choose: fn(f64, f64) -> f64) -> f64 {
    values.iter().copied().reduce(choose).unwrap_or(f64::NAN)
}

impl Report {
    pub(super) fn new(counter: Counter) -> Self {
        Self { counter, figures: Vec::new() }
    }

    /// Adds a figure that was measured once.
    pub(super) fn add(
        &mut self,
        key: &str,
        subject: impl Display,
        value: f64,
        unit: &'static str,
    ) -> &mut Figure {
        let figure = Figure {
            key: key.to_owned(),
            subject: subject.to_string(),
            value,
            unit,
            spread: None,
            ratio: None,
            aim: None,
        };
        self.figures.push_mut(figure)
    }

    /// Adds the best of several repetitions.
    pub(super) fn add_best(
        &mut self,
        key: &str,
        subject: impl Display,
        best: Best,
        unit: &'static str,
    ) -> &mut Figure {
        let figure = self.add(key, subject, best.value, unit);
        figure.spread = Some(best.spread);
        figure
    }
}

impl Figure {
    /// Sets the baseline of the figure.
    pub(super) fn compared_with(&mut self, baseline: f64) -> &mut Self {
        self.ratio = Some(self.value / baseline);
        self
    }

    /// Sets the maximum of the value as the aim.
    pub(super) fn at_most(&mut self, most: f64) -> &mut Self {
        let met = self.value <= most;
        self.aim = Some(Aim { text: format!("≤ {most} {}", self.unit), met });
        self
    }

    /// Sets the minimum of the value as the aim.
    pub(super) fn at_least(&mut self, least: f64) -> &mut Self {
        let met = self.value >= least;
        self.aim = Some(Aim { text: format!("≥ {least} {}", self.unit), met });
        self
    }

    /// Sets the maximum of the ratio as the aim.
    pub(super) fn at_most_times(&mut self, most: f64) -> &mut Self {
        self.at_most_times_of("bare", most)
    }

    /// Sets the maximum of the ratio to a baseline with this name as the aim.
    pub(super) fn at_most_times_of(&mut self, baseline: &str, most: f64) -> &mut Self {
        let met = self.ratio.is_some_and(|ratio| ratio <= most);
        self.aim = Some(Aim { text: format!("≤ {most} × {baseline}"), met });
        self
    }

    /// Sets the minimum of the ratio as the aim.
    pub(super) fn at_least_times(&mut self, least: f64) -> &mut Self {
        let met = self.ratio.is_some_and(|ratio| ratio >= least);
        self.aim = Some(Aim { text: format!("≥ {least} × bare"), met });
        self
    }
}
