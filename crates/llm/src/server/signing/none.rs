//! Without the feature `sigv4`, no request is signed.

use helix_agents_core::error::Result;
use reqwest::Request;

use crate::secret::ApiKey;
use crate::server::{Inner, ModelServerOptions};

impl ModelServerOptions {
    pub(in crate::server) const fn signs(&self) -> bool {
        false
    }

    pub(in crate::server) const fn check_signing(&self) -> Result<()> {
        Ok(())
    }

    pub(in crate::server) const fn session_token(&self) -> Option<&ApiKey> {
        None
    }
}

impl Inner {
    pub(in crate::server) const fn sign(&self, _: &mut Request) -> Result<()> {
        Ok(())
    }
}
