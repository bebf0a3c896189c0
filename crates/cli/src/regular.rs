//! Reading whole small files that somebody else named: never more than a limit, and never anything
//! but a regular file, for a pipe or a device may not end.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt as _};
use rustix::fs::OFlags;

/// The content of a file of at most `most` bytes, named as a person named it.
///
/// # Errors
/// That of the system, and one with a sentence if it is too large, no regular file, or not UTF-8.
pub(crate) fn read_text(path: &Path, most: u64) -> io::Result<String> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let open = File::options().read(true).custom_flags(without_waiting()).open(path)?;
    text_of(open, most)
}

/// The same for a file below a folder. A path that leads out of the folder is an error.
///
/// # Errors
/// As for [`read_text`].
pub(crate) fn read_text_below(folder: &Dir, path: &Path, most: u64) -> io::Result<String> {
    text_of(open_below(folder, path)?, most)
}

/// Opens a regular file below a folder for reading.
///
/// # Errors
/// That of the system, and one with a sentence if it is no regular file.
pub(crate) fn open_below(folder: &Dir, path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(without_waiting());
    let file = folder.open_with(path, &options)?.into_std();
    check_regular(&file)?;
    Ok(file)
}

/// Opening a pipe waits for somebody at its other end, unless told not to.
fn without_waiting() -> i32 {
    (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed()
}

fn check_regular(file: &File) -> io::Result<()> {
    let kind = file.metadata()?.file_type();
    match () {
        () if kind.is_file() => Ok(()),
        () if kind.is_dir() => Err(io::Error::other("it is a folder, not a file")),
        () => Err(io::Error::other("it is a pipe, a device or a socket, not a file")),
    }
}

fn text_of(file: File, most: u64) -> io::Result<String> {
    check_regular(&file)?;
    let too_large = || io::Error::other(format!("it is larger than {most} bytes"));
    if file.metadata()?.len() > most {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    // It may have grown since.
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(too_large());
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        io::Error::other(format!("it is not text in UTF-8 (at byte {at})"))
    })
}

#[cfg(test)]
mod tests;
