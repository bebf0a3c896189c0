//! Writes a set of files atomically: all of them or none.

use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use helix_agents::error::{Error, ErrorCode, Result};
use tempfile::{NamedTempFile, TempPath};

/// The files to write.
#[derive(Debug, Default)]
pub(super) struct Draft {
    files: Vec<(PathBuf, String)>,
}

/// The changes made so far. They are undone if a later one fails.
#[derive(Debug, Default)]
struct Changes {
    folders: Vec<PathBuf>,
    /// The written files, each with a backup of the file that it replaced.
    files: Vec<(PathBuf, Option<TempPath>)>,
}

impl Draft {
    /// Adds a file.
    pub(super) fn add(&mut self, path: PathBuf, text: String) {
        self.files.push((path, text));
    }

    /// Writes the files and creates missing folders. Existing files are replaced only with `force`;
    /// files with the same content are not touched. Returns the paths of the written files.
    ///
    /// # Errors
    /// Returns [`ErrorCode::InputInvalid`] if a file exists or cannot be written. Nothing is
    /// changed then.
    pub(super) fn write(mut self, force: bool) -> Result<Vec<PathBuf>> {
        self.files.retain(|(path, text)| !is_same(path, text));
        let existing: Vec<_> =
            self.files.iter().map(|(path, _)| path).filter(|path| is_there(path)).collect();
        if let Some(path) = existing.iter().find(|path| !path.is_file()) {
            return Err(refused(path, "the path exists and is not a file"));
        }
        if let (false, Some(first)) = (force, existing.first()) {
            let message = match existing.len() {
                1 => "the file exists already; --force replaces it".to_owned(),
                number => format!("{number} files exist already; --force replaces them"),
            };
            return Err(refused(first, message));
        }
        let mut changes = Changes::default();
        let written = self.files.iter().map(|(path, _)| path.clone()).collect();
        match self.try_write(&mut changes) {
            Ok(()) => Ok(written),
            Err(error) => {
                changes.undo();
                Err(error)
            }
        }
    }

    fn try_write(self, changes: &mut Changes) -> Result<()> {
        let unwritable = |path: &Path, error: io::Error| {
            if error.kind() == io::ErrorKind::PermissionDenied {
                let message = "the folder is not writable: choose another one, or change its \
                               permissions";
                return refused(path, message);
            }
            refused(path, "the file cannot be written").with_source(error)
        };
        // A lack of space or permissions causes an error here, before anything is replaced.
        let mut staged = Vec::new();
        for (path, text) in self.files {
            let stage = changes.create_folder_of(&path).and_then(|folder| stage(folder, &text));
            let stage = stage.map_err(|error| unwritable(&path, error))?;
            staged.push((path, stage));
        }
        for (path, stage) in staged {
            changes.put(&path, stage).map_err(|error| unwritable(&path, error))?;
        }
        Ok(())
    }
}

impl Changes {
    /// Creates the folder of a file and its parents.
    fn create_folder_of<'a>(&mut self, path: &'a Path) -> io::Result<&'a Path> {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => return Ok(Path::new(".")),
        };
        let missing: Vec<_> = folder.ancestors().take_while(|folder| !is_there(folder)).collect();
        for missing in missing.into_iter().rev().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir(missing)?;
            self.folders.push(missing.to_owned());
        }
        Ok(folder)
    }

    /// Moves a file to its place. An existing file is kept as a backup.
    fn put(&mut self, path: &Path, stage: NamedTempFile) -> io::Result<()> {
        let before = match path.is_file() {
            false => None,
            true => {
                let folder = stage.path().parent().unwrap_or(Path::new("."));
                let backup = NamedTempFile::new_in(folder)?.into_temp_path();
                fs::rename(path, &backup)?;
                Some(backup)
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

    /// Restores the previous state as far as possible.
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

/// Creates a temporary file in the folder, with the permissions of a new file.
fn stage(folder: &Path, text: &str) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    let mut file = builder.permissions(Permissions::from_mode(0o666)).tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}

/// Returns `true` if the path exists, even as a broken link.
fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn is_same(path: &Path, text: &str) -> bool {
    let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
    let same_length =
        path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() == length);
    same_length && fs::read(path).is_ok_and(|bytes| bytes == text.as_bytes())
}

fn refused(path: &Path, message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorCode::InputInvalid, message).with_context("path", path.display())
}

#[cfg(test)]
mod tests;
