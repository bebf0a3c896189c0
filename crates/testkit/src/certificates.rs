//! Certificates for test servers that use TLS.
//!
//! The program `openssl` creates them, with a new key each time.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// OpenSSL settings that replace those of the system, whose content is unknown.
const SETTINGS: &str = "[req]\ndistinguished_name = name\n[name]\n";

/// A certificate authority: a root certificate and the certificates that it signs.
#[derive(Debug)]
pub struct Authority {
    folder: tempfile::TempDir,
}

impl Authority {
    /// Creates a new authority, which no trust store contains.
    ///
    /// # Panics
    /// If `openssl` is missing or fails.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it runs a program")]
    pub fn new() -> Self {
        let authority = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::write(authority.path("settings"), SETTINGS).unwrap();
        let extensions = ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign"];
        authority.make("root", &extensions, &[]);
        authority
    }

    /// Returns the path of the root certificate.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.path("root.pem")
    }

    /// Creates a certificate and returns the paths of the certificate and its key. It is valid for a server
    /// at `localhost` (not at an IP address), or for a client.
    #[must_use]
    pub fn sign(&self, name: &str) -> (PathBuf, PathBuf) {
        let (root, key) = (self.root(), self.path("root.key"));
        let signed_by = ["-CA", text(&root), "-CAkey", text(&key)];
        let extensions = ["basicConstraints=critical,CA:FALSE", "subjectAltName=DNS:localhost"];
        self.make(name, &extensions, &signed_by);
        (self.path(&format!("{name}.pem")), self.path(&format!("{name}.key")))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn make(&self, name: &str, extensions: &[&str], more: &[&str]) {
        let (certificate, key) =
            (self.path(&format!("{name}.pem")), self.path(&format!("{name}.key")));
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-nodes", "-days", "2"]);
        openssl.args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]);
        openssl.arg("-config").arg(self.path("settings"));
        openssl.arg("-keyout").arg(key).arg("-out").arg(certificate).args(more);
        for extension in extensions {
            openssl.args(["-addext", extension]);
        }
        // The name differs from that of every other root, and does not end with a slash.
        let root = self.folder.path().file_name().unwrap().to_string_lossy();
        openssl.arg("-subj").arg(format!("/CN={name} of {root}"));
        let output = openssl.stdin(Stdio::null()).output();
        let output = output.unwrap_or_else(|error| panic!("openssl cannot be run: {error}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{openssl:?} failed:\n{said}");
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
