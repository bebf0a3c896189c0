//! Connection options of the Temporal client, for connections that need more than a URL.

pub use temporalio_client::{
    ClientKeepAliveOptions, ClientOptions, ClientTlsOptions, ConnectionOptions, GrpcCompression,
    TlsOptions, Url,
};
