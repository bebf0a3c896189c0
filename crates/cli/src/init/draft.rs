//! Files that are written all together, or not at all.

use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use helix_agents::error::{Error, ErrorCode, Result};
use tempfile::{NamedTempFile, TempPath};

/// Files that are not there yet.
#[derive(Debug, Default)]
pub(super) struct Draft {
    files: Vec<(PathBuf, String)>,
}

/// What was done so far, to be undone unless it all succeeds.
#[derive(Debug, Default)]
struct Done {
    folders: Vec<PathBuf>,
    /// Files, each with the one that was there before.
    files: Vec<(PathBuf, Option<TempPath>)>,
}

impl Draft {
    /// Adds a file.
    pub(super) fn add(&mut self, path: PathBuf, text: String) {
        self.files.push((path, text));
    }

    /// Writes the files, and the folders that they need. Files that are there already are replaced
    /// only if `force`; those that have the same text are left alone either way. Returns what was
    /// written.
    ///
    /// # Errors
    /// [`ErrorCode::InputInvalid`] if a file is in the way or cannot be written. Nothing has
    /// changed then.
    pub(super) fn write(mut self, force: bool) -> Result<Vec<PathBuf>> {
        self.files.retain(|(path, text)| !is_same(path, text));
        let in_the_way: Vec<_> =
            self.files.iter().map(|(path, _)| path).filter(|path| is_there(path)).collect();
        if let Some(path) = in_the_way.iter().find(|path| !path.is_file()) {
            return Err(refused(path, "something that is no file is in the way"));
        }
        if let (false, Some(first)) = (force, in_the_way.first()) {
            let message = match in_the_way.len() {
                1 => "the file is there already; --force replaces it".to_owned(),
                number => format!("{number} files are there already; --force replaces them"),
            };
            return Err(refused(first, message));
        }
        let mut done = Done::default();
        let written = self.files.iter().map(|(path, _)| path.clone()).collect();
        match self.try_write(&mut done) {
            Ok(()) => Ok(written),
            Err(error) => {
                done.undo();
                Err(error)
            }
        }
    }

    fn try_write(self, done: &mut Done) -> Result<()> {
        let unwritable = |path: &Path, error: io::Error| {
            if error.kind() == io::ErrorKind::PermissionDenied {
                let message = "its folder cannot be written: name another one, or give yourself \
                               the right to write it";
                return refused(path, message);
            }
            refused(path, "it cannot be written").with_source(error)
        };
        // Whatever can fail for want of room or rights does so here, before anything is replaced.
        let mut staged = Vec::new();
        for (path, text) in self.files {
            let stage = done.make_folder_of(&path).and_then(|folder| stage(folder, &text));
            let stage = stage.map_err(|error| unwritable(&path, error))?;
            staged.push((path, stage));
        }
        for (path, stage) in staged {
            done.put(&path, stage).map_err(|error| unwritable(&path, error))?;
        }
        Ok(())
    }
}

impl Done {
    /// Makes the folder of a file, and those above it.
    fn make_folder_of<'a>(&mut self, path: &'a Path) -> io::Result<&'a Path> {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => return Ok(Path::new(".")),
        };
        let missing: Vec<_> = folder.ancestors().take_while(|it| !is_there(it)).collect();
        for missing in missing.into_iter().rev().filter(|it| !it.as_os_str().is_empty()) {
            fs::create_dir(missing)?;
            self.folders.push(missing.to_owned());
        }
        Ok(folder)
    }

    /// Puts a file into its place. What was there is kept aside.
    fn put(&mut self, path: &Path, stage: NamedTempFile) -> io::Result<()> {
        let before = match path.is_file() {
            false => None,
            true => {
                let folder = stage.path().parent().unwrap_or(Path::new("."));
                let aside = NamedTempFile::new_in(folder)?.into_temp_path();
                fs::rename(path, &aside)?;
                Some(aside)
            }
        };
        match stage.persist_noclobber(path) {
            Ok(_) => {
                self.files.push((path.to_owned(), before));
                Ok(())
            }
            Err(error) => {
                if let Some(before) = before {
                    before.persist(path)?;
                }
                Err(error.error)
            }
        }
    }

    /// Brings back what was there. What cannot be brought back stays as it is.
    fn undo(self) {
        for (path, before) in self.files.into_iter().rev() {
            let _undone = match before {
                Some(before) => before.persist(&path).is_ok(),
                None => fs::remove_file(&path).is_ok(),
            };
        }
        for folder in self.folders.iter().rev() {
            let _undone = fs::remove_dir(folder).is_ok();
        }
    }
}

/// A file beside its place, with the rights that a new file has.
fn stage(folder: &Path, text: &str) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    let mut file = builder.permissions(Permissions::from_mode(0o666)).tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}

/// Whether something is there, a link that leads nowhere included.
fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn is_same(path: &Path, text: &str) -> bool {
    let long = u64::try_from(text.len()).unwrap_or(u64::MAX);
    let same_length = path.metadata().is_ok_and(|it| it.is_file() && it.len() == long);
    same_length && fs::read(path).is_ok_and(|there| there == text.as_bytes())
}

fn refused(path: &Path, message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorCode::InputInvalid, message).with_context("path", path.display())
}

#[cfg(test)]
mod tests;
