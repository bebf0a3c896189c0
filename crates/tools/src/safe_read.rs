//! Safe reads of small files with untrusted names: at most a limit, and only regular files, because a
//! pipe or a device may never end.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt as _};
use rustix::fs::OFlags;

/// Reads a text file of at most `most` bytes.
///
/// # Errors
/// Returns I/O errors, and an error if the file is too large, not a regular file, or not UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let open = File::options().read(true).custom_flags(non_blocking()).open(path)?;
    text_of(open, most)
}

/// Reads a text file of at most `most` bytes below a folder.
///
/// # Errors
/// Returns the errors of [`read_text`], and an error if the path leads out of the folder.
pub fn read_text_below(folder: &Dir, path: &Path, most: u64) -> io::Result<String> {
    text_of(open_below(folder, path)?, most)
}

/// Opens a regular file below a folder for reading.
///
/// # Errors
/// Returns I/O errors, and an error if it is not a regular file.
pub fn open_below(folder: &Dir, path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(non_blocking());
    let file = folder.open_with(path, &options)?.into_std();
    check_regular(&file)?;
    Ok(file)
}

/// The open flags that keep the open of a pipe from blocking.
fn non_blocking() -> i32 {
    (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed()
}

fn check_regular(file: &File) -> io::Result<()> {
    let kind = file.metadata()?.file_type();
    match () {
        () if kind.is_file() => Ok(()),
        () if kind.is_dir() => Err(io::Error::other("it is a folder")),
        () => Err(io::Error::other("it is a pipe, a device or a socket")),
    }
}

fn text_of(file: File, most: u64) -> io::Result<String> {
    check_regular(&file)?;
    let too_large = || io::Error::other(format!("it is larger than {most} bytes"));
    if file.metadata()?.len() > most {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    // The file may have grown since.
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(too_large());
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        io::Error::other(format!("it is not valid UTF-8 (at byte {at})"))
    })
}

#[cfg(test)]
mod tests;
