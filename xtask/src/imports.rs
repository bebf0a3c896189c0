//! The imports between the files of one crate, read from their tokens.
//!
//! Every path counts: in `use` declarations, expressions, types and macro arguments.
//! A name that a module re-exports leads to the file that defines it. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr as _;

use anyhow::{Result, anyhow};
use proc_macro2::TokenStream;

mod paths;

#[cfg(test)]
mod tests;

use paths::{FilePaths, Imported};

/// The maximum number of re-exports between a path and the definition that it leads to.
const HOPS: usize = 8;

/// A module path within its crate. The root is empty.
type Module = Vec<String>;

/// The modules of a crate, each in a file of its own.
pub(crate) struct Crate {
    files: BTreeMap<Module, File>,
}

struct File {
    path: String,
    written: FilePaths,
}

impl Crate {
    /// Reads a crate from its files, given by path and text. The paths are below `folder`, the folder of the root.
    pub(crate) fn read<'a>(
        folder: &str,
        files: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self> {
        let mut modules = BTreeMap::new();
        for (path, text) in files {
            let Some(module) = path.strip_prefix(folder).and_then(module_of) else { continue };
            let tokens = TokenStream::from_str(text)
                .map_err(|error| anyhow!("{path}: not Rust: {error}"))?;
            modules.insert(module, File { path: path.to_owned(), written: paths::read(tokens) });
        }
        Ok(Self { files: modules })
    }

    /// Maps each file to the files that it imports from, except those of its ancestor modules.
    pub(crate) fn imports(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let of = |(module, file): (&Module, &'_ File)| -> BTreeSet<&str> {
            let targets =
                file.written.paths.iter().filter_map(|path| self.target(module, path, HOPS));
            targets
                .filter(|target| !module.starts_with(target))
                .filter_map(|target| self.path(target))
                .collect()
        };
        self.files.iter().map(|entry| (entry.1.path.as_str(), of(entry))).collect()
    }

    fn path(&self, module: &Module) -> Option<&str> {
        self.files.get(module).map(|file| file.path.as_str())
    }

    /// Returns the module that defines what a path leads to, or `None` if that is in another crate.
    fn target(&self, from: &Module, path: &[String], hops: usize) -> Option<&Module> {
        let (start, rest) = path.split_first()?;
        let (mut module, mut rest) = match start.as_str() {
            "crate" => (Module::new(), rest),
            "self" => (from.clone(), rest),
            "super" => (from.split_last()?.1.to_vec(), rest),
            _ => (from.clone(), path),
        };
        let is_relative = !matches!(start.as_str(), "crate" | "self" | "super");
        while let Some((name, after)) = rest.split_first() {
            if name == "super" {
                module.pop();
            } else {
                module.push(name.clone());
                if !self.files.contains_key(&module) {
                    module.pop();
                    break;
                }
            }
            rest = after;
        }
        let (module, file) = self.files.get_key_value(&module)?;
        let Some((name, after)) = rest.split_first() else { return Some(module) };
        match self.imported(module, file, name, after, hops) {
            Some(found) => Some(found),
            // A relative path whose first name is neither a module nor imported is of another crate.
            None if is_relative && module == from => None,
            None => Some(module),
        }
    }

    /// Follows a name that a module imports.
    fn imported(
        &self,
        module: &Module,
        file: &File,
        name: &str,
        after: &[String],
        hops: usize,
    ) -> Option<&Module> {
        let hops = hops.checked_sub(1)?;
        let follow = |path: &[String]| {
            let path: Vec<String> = path.iter().chain(after).cloned().collect();
            self.target(module, &path, hops)
        };
        let named = file.written.imports.iter().find(|import| import.name == name);
        if let Some(Imported { path, .. }) = named {
            // `use name;` of a child or of another crate leads nowhere else.
            return if path.first().is_some_and(|first| first == name) {
                None
            } else {
                follow(path)
            };
        }
        file.written.globs.iter().find_map(|glob| {
            let path: Vec<String> = glob.iter().cloned().chain([name.to_owned()]).collect();
            let found = self.target(module, &path, hops)?;
            self.files.get(found)?.written.defines(name).then_some(found)
        })
    }
}

/// Returns the module of a file, given its path below the folder of the root. Tests have none.
fn module_of(path: &str) -> Option<Module> {
    let names: Vec<&str> = path.trim_start_matches('/').strip_suffix(".rs")?.split('/').collect();
    if names.contains(&"tests") || names.first() == Some(&"bin") {
        return None;
    }
    match names.as_slice() {
        ["lib" | "main"] => Some(Module::new()),
        names => Some(names.iter().map(|name| (*name).to_owned()).collect()),
    }
}
