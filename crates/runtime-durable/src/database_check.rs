//! A check that the database is reachable. DBOS itself would retry for a minute and report a less specific error.

use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, Result};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, Error as Problem};

/// The timeout of the connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The PostgreSQL error code for a missing database, which DBOS then creates.
const NO_DATABASE: &str = "3D000";

/// Connects to the database and closes the connection.
///
/// # Errors
/// Returns [`ErrorCode::ConfigInvalid`] if the URL or its credentials are invalid, and
/// [`ErrorCode::StoreUnavailable`] if the server does not answer.
pub(crate) async fn check(url: &str) -> Result<()> {
    choose_cryptography();
    let connected = tokio::time::timeout(CONNECT_TIMEOUT, PgConnection::connect(url)).await;
    let problem = match connected {
        Ok(Ok(connection)) => {
            // An error while closing does not matter.
            drop(connection.close().await);
            return Ok(());
        }
        Ok(Err(problem)) => problem,
        Err(_) => Problem::PoolTimedOut,
    };
    match problem {
        Problem::Database(error) if error.code().as_deref() == Some(NO_DATABASE) => Ok(()),
        Problem::Database(error) if error.code().is_some_and(|code| code.starts_with("28")) => Err(
            Error::new(ErrorCode::ConfigInvalid, format!("PostgreSQL rejected the login: {error}")),
        ),
        Problem::Database(error) if error.message().contains("startup parameter") => {
            let message = format!(
                "the connection pooler rejected the connection: {error}; name that parameter in the pooler's \
                 `ignore_startup_parameters` and use session pooling, or connect directly \
                 to PostgreSQL"
            );
            Err(Error::new(ErrorCode::ConfigInvalid, message))
        }
        Problem::Configuration(wrong) => {
            let message = format!("the database's URL cannot be used: {wrong}");
            Err(Error::new(ErrorCode::ConfigInvalid, message))
        }
        Problem::PoolTimedOut => Err(Error::new(
            ErrorCode::StoreUnavailable,
            format!(
                "PostgreSQL did not answer within {CONNECT_TIMEOUT:?}; check the URL and that the server is \
                 running"
            ),
        )),
        problem => Err(Error::new(
            ErrorCode::StoreUnavailable,
            format!("PostgreSQL cannot be reached: {problem}; check the URL and that the server is running"),
        )
        .with_source(problem)),
    }
}

/// Installs a default crypto provider if the process has none. If several providers are compiled in, the certificate
/// checks of the driver panic without a default.
fn choose_cryptography() {
    if CryptoProvider::get_default().is_none() {
        // Another thread may install a provider first, which is equally good.
        drop(aws_lc_rs::default_provider().install_default());
    }
}
