//! Licence expressions: `MIT OR (Apache-2.0 WITH LLVM-exception AND ISC)`, and the older `MIT/Apache-2.0`.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::vec::IntoIter;

use anyhow::{Result, bail};

/// Returns `true` if the allowed licences satisfy the expression.
///
/// `a WITH b` is a separate licence: it is allowed only if it is listed in this form.
pub(super) fn is_satisfied(expression: &str, allowed: &BTreeSet<&str>) -> Result<bool> {
    let mut parser = Parser { tokens: tokens(expression).into_iter().peekable(), allowed };
    let satisfied = parser.either()?;
    match parser.tokens.next() {
        None => Ok(satisfied),
        Some(rest) => bail!("`{rest}` is unexpected"),
    }
}

fn tokens(expression: &str) -> Vec<String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    spaced.split_whitespace().map(str::to_owned).collect()
}

struct Parser<'a> {
    tokens: Peekable<IntoIter<String>>,
    allowed: &'a BTreeSet<&'a str>,
}

impl Parser<'_> {
    fn either(&mut self) -> Result<bool> {
        let mut satisfied = self.all()?;
        while self.accept("OR") {
            satisfied |= self.all()?;
        }
        Ok(satisfied)
    }

    fn all(&mut self) -> Result<bool> {
        let mut satisfied = self.one()?;
        while self.accept("AND") {
            satisfied &= self.one()?;
        }
        Ok(satisfied)
    }

    fn one(&mut self) -> Result<bool> {
        if self.accept("(") {
            let satisfied = self.either()?;
            if !self.accept(")") {
                bail!("a parenthesis is not closed");
            }
            return Ok(satisfied);
        }
        let license = self.identifier()?;
        if self.accept("WITH") {
            let exception = self.identifier()?;
            return Ok(self.allowed.contains(format!("{license} WITH {exception}").as_str()));
        }
        Ok(self.allowed.contains(license.as_str()))
    }

    fn identifier(&mut self) -> Result<String> {
        match self.tokens.next() {
            Some(token) if !["OR", "AND", "WITH", "(", ")"].contains(&token.as_str()) => Ok(token),
            Some(token) => bail!("`{token}` is unexpected"),
            None => bail!("unexpected end"),
        }
    }

    fn accept(&mut self, token: &str) -> bool {
        self.tokens.next_if(|next| next == token).is_some()
    }
}
