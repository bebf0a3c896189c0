//! The description of a tool, generated from its doc comment.

use proc_macro2::Ident;
use syn::{Attribute, Error, Expr, ExprLit, Lit, LitStr, Meta, Result};

#[cfg(test)]
mod tests;

const MISSING: &str = "a tool needs a description, by which the model decides when to call it: \
    write a doc comment, or give `#[tool(description = \"…\")]`";

/// Returns the description: `given`, or otherwise the doc comment of `function`.
pub(crate) fn of(
    function: &Ident,
    attributes: &[Attribute],
    given: Option<&LitStr>,
) -> Result<String> {
    if let Some(given) = given {
        let text = given.value().trim().to_owned();
        if text.is_empty() {
            return Err(Error::new_spanned(given, MISSING));
        }
        return Ok(text);
    }
    let mut lines = Vec::new();
    for attribute in attributes.iter().filter(|a| a.path().is_ident("doc")) {
        lines.extend(lines_of(attribute)?);
    }
    let text = paragraphs(&lines);
    if text.is_empty() {
        return Err(Error::new_spanned(function, MISSING));
    }
    Ok(text)
}

/// Returns the lines of one doc attribute; none for `#[doc(hidden)]` and similar attributes.
fn lines_of(attribute: &Attribute) -> Result<Vec<String>> {
    let Meta::NameValue(doc) = &attribute.meta else {
        return Ok(Vec::new());
    };
    let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &doc.value else {
        return Err(Error::new_spanned(
            &doc.value,
            "the doc comment must be literal text: write it out, or give `#[tool(description = \"…\")]`",
        ));
    };
    Ok(plain_lines(&text.value()))
}

/// Returns the lines of a comment, without the leading stars of a block comment.
fn plain_lines(text: &str) -> Vec<String> {
    let mut rest = text.split('\n').skip(1).map(str::trim).peekable();
    let starred =
        rest.peek().is_some() && rest.all(|line| line.is_empty() || line.starts_with('*'));
    let plain = text.split('\n').enumerate().map(|(number, line)| {
        let line = line.trim_end();
        let line = match line.trim_start().strip_prefix('*') {
            Some(line) if starred && number > 0 => line,
            _ => line,
        };
        line.strip_prefix(' ').unwrap_or(line).to_owned()
    });
    plain.collect()
}

/// Joins the lines of each paragraph. Blank lines separate paragraphs. List items, headings, quotes
/// and table rows keep their lines, and fenced code is kept unchanged.
fn paragraphs(lines: &[String]) -> String {
    let mut text = String::new();
    let mut fenced = false;
    let mut blank = false;
    for line in lines {
        let trimmed = line.trim();
        if trimmed.is_empty() && !fenced {
            blank = true;
            continue;
        }
        let fence = trimmed.starts_with("```");
        let own_line = fenced || fence || text.ends_with("```") || starts_a_block(trimmed);
        if !text.is_empty() {
            text.push_str(match (blank, own_line) {
                (true, _) => "\n\n",
                (false, true) => "\n",
                (false, false) => " ",
            });
        }
        text.push_str(if fenced && !fence { line } else { trimmed });
        fenced ^= fence;
        blank = false;
    }
    text.trim().to_owned()
}

fn starts_a_block(line: &str) -> bool {
    let after_number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = after_number.len() < line.len() && after_number.starts_with(". ");
    numbered || ["- ", "* ", "+ ", "#", ">", "|"].into_iter().any(|mark| line.starts_with(mark))
}
