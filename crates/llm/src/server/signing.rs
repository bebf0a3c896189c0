//! Requests that are signed instead of carrying a key.

#[cfg(not(feature = "sigv4"))]
mod none;
#[cfg(feature = "sigv4")]
mod sigv4;

#[cfg(feature = "sigv4")]
pub use sigv4::AwsCredentials;
