//! How Temporal is reached, in the words of its own client: for connections that need more than an address.

pub use temporalio_client::{
    ClientKeepAliveOptions, ClientOptions, ClientTlsOptions, ConnectionOptions, GrpcCompression,
    TlsOptions, Url,
};
