//! The paths in the tokens of a file.

use std::iter::Peekable;

use proc_macro2::token_stream::IntoIter;
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The paths of a file.
#[derive(Debug, Default)]
pub(super) struct FilePaths {
    /// Every path of at least two names, and every path of a `use` declaration.
    pub(super) paths: Vec<Vec<String>>,
    /// The names that `use` declarations import.
    pub(super) imports: Vec<Imported>,
    /// The modules whose names are all imported with `*`.
    pub(super) globs: Vec<Vec<String>>,
    defined: Vec<String>,
}

impl FilePaths {
    /// Returns `true` if the file itself defines an item of this name.
    pub(super) fn defines(&self, name: &str) -> bool {
        self.defined.iter().any(|defined| defined == name)
    }
}

/// A name that a `use` declaration imports.
#[derive(Debug)]
pub(super) struct Imported {
    pub(super) name: String,
    pub(super) path: Vec<String>,
}

/// Reads the tokens of a file.
pub(super) fn read(tokens: TokenStream) -> FilePaths {
    let mut written = FilePaths::default();
    scan(tokens, 0, &mut written);
    written
}

type Tokens = Peekable<IntoIter>;

/// Scans tokens. `depth` is the number of inline modules around them.
fn scan(tokens: TokenStream, depth: usize, written: &mut FilePaths) {
    let mut tokens = tokens.into_iter().peekable();
    let mut after_colons = false;
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(ident) => {
                let name = ident.to_string();
                match name.as_str() {
                    "use" => tree(&mut tokens, Vec::new(), depth, written),
                    "mod" => inline_module(&mut tokens, depth, written),
                    "struct" | "enum" | "trait" | "type" | "fn" | "const" | "static" | "union" => {
                        if let Some(TokenTree::Ident(defined)) = tokens.peek() {
                            written.defined.push(defined.to_string());
                        }
                    }
                    _ if !after_colons && is_colons(&mut tokens) => {
                        path(&mut tokens, name, depth, written)
                    }
                    _ => {}
                }
                after_colons = false;
            }
            TokenTree::Group(group) => {
                after_colons = false;
                scan(group.stream(), depth, written);
            }
            TokenTree::Punct(punct) => after_colons = punct.as_char() == ':',
            TokenTree::Literal(_) => after_colons = false,
        }
    }
}

/// Scans an inline module. Test modules are skipped.
fn inline_module(tokens: &mut Tokens, depth: usize, written: &mut FilePaths) {
    let Some(TokenTree::Ident(name)) = tokens.next() else { return };
    let body = tokens.next_if(|token| matches!(token, TokenTree::Group(_)));
    if let Some(TokenTree::Group(body)) = body
        && name != "tests"
    {
        scan(body.stream(), depth + 1, written);
    }
}

/// Consumes `::` if it is next.
fn is_colons(tokens: &mut Tokens) -> bool {
    let is_colon =
        |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ':');
    // A single colon is followed by a space or a name, so `::` is recognised by its first half.
    let is_first = matches!(
        tokens.peek(),
        Some(TokenTree::Punct(punct)) if punct.as_char() == ':' && punct.spacing() == proc_macro2::Spacing::Joint
    );
    is_first && tokens.next_if(is_colon).is_some() && tokens.next_if(is_colon).is_some()
}

/// Reads the rest of a path outside of a `use` declaration, after its first `::`.
fn path(tokens: &mut Tokens, first: String, depth: usize, written: &mut FilePaths) {
    let mut names = vec![first];
    while let Some(TokenTree::Ident(name)) =
        tokens.next_if(|token| matches!(token, TokenTree::Ident(_)))
    {
        names.push(name.to_string());
        if !is_colons(tokens) {
            break;
        }
    }
    add(names, depth, written);
}

/// Reads a `use` tree after the names before it.
fn tree(tokens: &mut Tokens, mut names: Vec<String>, depth: usize, written: &mut FilePaths) {
    loop {
        match tokens.next() {
            Some(TokenTree::Ident(name)) => {
                names.push(name.to_string());
                if is_colons(tokens) {
                    continue;
                }
                let alias = alias(tokens);
                let last =
                    if name == "self" { names.pop().and(names.last()) } else { names.last() };
                let Some(name) = alias.or_else(|| last.cloned()) else { return };
                if let Some(path) = add(names, depth, written)
                    && depth == 0
                {
                    written.imports.push(Imported { name, path });
                }
                return;
            }
            Some(TokenTree::Punct(star)) if star.as_char() == '*' => {
                if let Some(path) = add(names, depth, written)
                    && depth == 0
                {
                    written.globs.push(path);
                }
                return;
            }
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                let mut tokens = group.stream().into_iter().peekable();
                while tokens.peek().is_some() {
                    tree(&mut tokens, names.clone(), depth, written);
                    tokens.next(); // the comma
                }
                return;
            }
            // `use ::name` is of another crate.
            Some(TokenTree::Punct(_)) => {}
            _ => return,
        }
    }
}

/// Reads `as name`.
fn alias(tokens: &mut Tokens) -> Option<String> {
    tokens.next_if(|token| matches!(token, TokenTree::Ident(ident) if ident == "as"))?;
    tokens.next().map(|name| name.to_string())
}

fn add(names: Vec<String>, depth: usize, written: &mut FilePaths) -> Option<Vec<String>> {
    let path = within(names, depth)?;
    written.paths.push(path.clone());
    Some(path)
}

/// Returns a path as seen from the file, given that it is in `depth` inline modules. Returns `None` for a path that does
/// not leave those modules.
fn within(names: Vec<String>, depth: usize) -> Option<Vec<String>> {
    let up = names.iter().take_while(|name| *name == "super").count();
    match (names.first().map(String::as_str), up) {
        (Some("crate"), _) => Some(names),
        (_, up) if up > depth => Some(names.into_iter().skip(depth).collect()),
        (_, up) if depth > 0 && up == depth => {
            Some([String::from("self")].into_iter().chain(names.into_iter().skip(depth)).collect())
        }
        _ if depth > 0 => None,
        _ => Some(names),
    }
}
