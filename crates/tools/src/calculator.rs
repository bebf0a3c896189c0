//! The tool `calculate`: arithmetic.

use helix_agents_core::tool::{EffectClass, Tool, ToolContext, ToolError};
use nanoexpr::{Error, ErrorKind, Evaluator, Math};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::number;

/// The maximum nesting depth of parentheses, calls and operators.
const MAX_DEPTH: usize = 64;

const DESCRIPTION: &str = "\
Compute an arithmetic expression. Operators: + - * / ^ (power), mod, ! (factorial), and parentheses. \
Functions: sqrt cbrt abs sign exp ln log2 log10 log(x, base) sin cos tan asin acos atan atan2 sinh cosh \
tanh asinh acosh atanh floor ceil round trunc pow hypot min max clamp fact. Constants: pi, tau, e. Angles \
are in radians. Write 1500000 or 1.5e6, not 1,500,000.";

/// The tool `calculate`. It has no settings.
#[derive(Debug, Clone, Copy, Default)]
pub struct CalculatorTool {}

impl CalculatorTool {
    /// Creates the builder of the tool.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates the tool.
    #[must_use]
    pub fn tool(self) -> Tool {
        let run = |input: Calculation, _: ToolContext| async move { compute(&input.expression) };
        Tool::function("calculate", DESCRIPTION, run).effect(EffectClass::Pure)
    }
}

/// The input of the tool.
#[derive(Debug, Deserialize, JsonSchema)]
struct Calculation {
    /// The expression, for example `2 * (3 + 4) ^ 2 / sqrt(16)`.
    #[schemars(length(min = 1, max = 500))]
    expression: String,
}

/// The output of the tool.
#[derive(Debug, PartialEq, Serialize)]
struct Computed {
    value: serde_json::Number,
}

fn compute(expression: &str) -> Result<Computed, ToolError> {
    let evaluator = Evaluator::<_, 32>::new(&Math).max_depth(MAX_DEPTH);
    let value: f64 = evaluator.evaluate(expression).map_err(|error| explain(expression, error))?;
    let not_finite = || ToolError::new("the result is not a finite number");
    let value = number::json(value).ok_or_else(not_finite)?;
    Ok(Computed { value })
}

fn explain(expression: &str, error: Error) -> ToolError {
    let part = expression.get(error.span.start..error.span.end).unwrap_or_default();
    let advice = match error.kind {
        ErrorKind::UnknownVariable | ErrorKind::UnknownFunction => {
            "; the tool's description lists the names there are"
        }
        ErrorKind::UnexpectedCharacter | ErrorKind::UnexpectedToken => {
            "; write numbers without separators or units, and * for every multiplication"
        }
        ErrorKind::TooDeep => "; compute it in parts",
        _ => "",
    };
    let place = error.span.start + 1;
    ToolError::new(match part {
        "" => format!("{} at position {place}{advice}", error.kind),
        part => format!("{} at position {place}, in `{part}`{advice}", error.kind),
    })
}

#[cfg(test)]
mod tests;
