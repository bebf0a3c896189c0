//! Version 4 of AWS's signatures, for Amazon Bedrock.

use std::fmt;
use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use helix_agents_core::error::{Error, ErrorCode, Result};
use reqwest::Request;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};

use crate::env::{AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, EnvVar};
use crate::secret::ApiKey;
use crate::server::{ApiFormat, Hosting, Inner, ModelServerOptions};

#[cfg(test)]
mod tests;

/// The credentials of an AWS account, which sign requests to Amazon Bedrock. The secret key is never sent.
///
/// ```
/// use helix_agents_llm::{AwsCredentials, ModelServerOptions};
///
/// let credentials = AwsCredentials::new("AKIAEXAMPLE", "secret");
/// let options = ModelServerOptions::bedrock_converse("bedrock", "eu-west-1")
///     .with_aws_credentials(credentials);
/// ```
#[derive(Clone)]
pub struct AwsCredentials {
    access_key_id: String,
    secret_access_key: ApiKey,
    session_token: Option<ApiKey>,
}

impl AwsCredentials {
    /// Creates credentials from a key and its secret.
    #[must_use]
    pub fn new(access_key_id: &str, secret_access_key: impl Into<ApiKey>) -> Self {
        Self {
            access_key_id: access_key_id.trim().to_owned(),
            secret_access_key: secret_access_key.into(),
            session_token: None,
        }
    }

    /// Sets the session token of temporary credentials.
    #[must_use]
    pub fn with_session_token(mut self, token: impl Into<ApiKey>) -> Self {
        self.session_token = Some(token.into());
        self
    }

    /// Reads the credentials from the environment variables [`AWS_ACCESS_KEY_ID`], [`AWS_SECRET_ACCESS_KEY`] and
    /// [`AWS_SESSION_TOKEN`].
    ///
    /// # Errors
    /// Returns [`ErrorCode::ConfigInvalid`] if one of the first two is not set. A blank variable counts as not set.
    pub fn from_env() -> Result<Self> {
        Self::from_lookup(&|name| std::env::var(name).ok()).map_err(|variable| {
            let message = format!("the AWS credentials are missing: set {}", variable.name);
            Error::new(ErrorCode::ConfigInvalid, message)
        })
    }

    /// Like [`from_env`](Self::from_env), with a given environment. Returns the missing variable as the error.
    pub(crate) fn from_lookup(lookup: &dyn Fn(&str) -> Option<String>) -> Result<Self, EnvVar> {
        let lookup =
            |variable: EnvVar| lookup(variable.name).filter(|value| !value.trim().is_empty());
        let required = |variable: EnvVar| lookup(variable).ok_or(variable);
        let id = required(AWS_ACCESS_KEY_ID)?;
        let credentials = Self::new(&id, required(AWS_SECRET_ACCESS_KEY)?.as_str());
        Ok(match lookup(AWS_SESSION_TOKEN) {
            Some(token) => credentials.with_session_token(token.as_str()),
            None => credentials,
        })
    }

    /// Adds the headers of a signature to a request.
    fn sign(
        &self,
        request: &mut Request,
        region: &str,
        service: &str,
        time: SystemTime,
    ) -> Result<()> {
        let token = self.session_token.as_ref().map(|token| token.expose().to_owned());
        let (id, secret) = (self.access_key_id.as_str(), self.secret_access_key.expose());
        let identity = Credentials::new(id, secret, token, None, "helix").into();
        let parameters = v4::SigningParams::builder()
            .identity(&identity)
            .region(region)
            .name(service)
            .time(time)
            .settings(SigningSettings::default())
            .build()
            .map_err(cannot_be_signed)?
            .into();
        let text =
            |(name, value)| Some((HeaderName::as_str(name), HeaderValue::to_str(value).ok()?));
        let headers = request.headers().iter().filter_map(text);
        let body = request.body().and_then(reqwest::Body::as_bytes).unwrap_or_default();
        let signable = SignableRequest::new(
            request.method().as_str(),
            request.url().as_str(),
            headers,
            SignableBody::Bytes(body),
        );
        let signed = sign(signable.map_err(cannot_be_signed)?, &parameters);
        let (instructions, _) = signed.map_err(cannot_be_signed)?.into_parts();
        for (name, value) in instructions.headers() {
            let name = HeaderName::try_from(name).map_err(cannot_be_signed)?;
            let mut value = HeaderValue::try_from(value).map_err(cannot_be_signed)?;
            value.set_sensitive(true);
            request.headers_mut().insert(name, value);
        }
        Ok(())
    }
}

fn cannot_be_signed(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(ErrorCode::ConfigInvalid, "the request cannot be signed").with_source(error)
}

impl fmt::Debug for AwsCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AwsCredentials").finish_non_exhaustive()
    }
}

impl ModelServerOptions {
    /// Returns `true` if there are AWS credentials. An `authorization` header takes precedence over the signature.
    pub(in crate::server) const fn signs(&self) -> bool {
        self.aws_credentials.is_some()
    }

    /// Rejects AWS credentials if the host is not Amazon Bedrock.
    pub(in crate::server) fn check_signing(&self) -> Result<()> {
        if self.signs() && !matches!(self.hosting, Hosting::Bedrock { .. }) {
            let message = format!(
                "the provider `{}` has AWS credentials, which can sign only requests to Amazon Bedrock",
                self.name
            );
            return Err(Error::new(ErrorCode::ConfigInvalid, message));
        }
        Ok(())
    }

    /// Returns the session token, which the headers of a signed request contain.
    pub(in crate::server) fn session_token(&self) -> Option<&ApiKey> {
        self.aws_credentials.as_ref()?.session_token.as_ref()
    }

    /// Returns the name of the service that a signature contains.
    const fn aws_service(&self) -> &'static str {
        match self.format {
            ApiFormat::BedrockConverse => "bedrock",
            _ => "bedrock-mantle",
        }
    }
}

impl Inner {
    /// Signs a request that has all its other headers, unless one of them already authenticates it.
    pub(in crate::server) fn sign(&self, request: &mut Request) -> Result<()> {
        let options = &self.options;
        match (&options.aws_credentials, &options.hosting) {
            (Some(credentials), Hosting::Bedrock { region })
                if !request.headers().contains_key(AUTHORIZATION) =>
            {
                let now = SystemTime::from(jiff::Timestamp::now());
                credentials.sign(request, region, options.aws_service(), now)
            }
            _ => Ok(()),
        }
    }
}
