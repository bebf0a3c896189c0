//! Whether the database answers. DBOS would ask for a minute, and say less.

use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, Result};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, Error as Problem};

/// How long it may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What PostgreSQL says if there is no database of that name: DBOS makes one.
const NO_DATABASE: &str = "3D000";

/// Connects, and lets the connection go.
///
/// # Errors
/// [`ErrorCode::ConfigInvalid`] if the URL or what it says of the user is wrong,
/// [`ErrorCode::StoreUnavailable`] if nobody answers.
pub(crate) async fn check(url: &str) -> Result<()> {
    choose_cryptography();
    let connected = tokio::time::timeout(PATIENCE, PgConnection::connect(url)).await;
    let problem = match connected {
        Ok(Ok(connection)) => {
            // Nobody waits for what it has to say now.
            drop(connection.close().await);
            return Ok(());
        }
        Ok(Err(problem)) => problem,
        Err(_) => Problem::PoolTimedOut,
    };
    match problem {
        Problem::Database(said) if said.code().as_deref() == Some(NO_DATABASE) => Ok(()),
        Problem::Database(said) if said.code().is_some_and(|code| code.starts_with("28")) => Err(
            Error::new(ErrorCode::ConfigInvalid, format!("PostgreSQL refuses the user: {said}")),
        ),
        Problem::Database(said) if said.message().contains("startup parameter") => {
            let message = format!(
                "a pooler refuses DBOS: {said}; name that parameter in the pooler's \
                 `ignore_startup_parameters` and have it lend connections for a session, or connect \
                 to PostgreSQL itself"
            );
            Err(Error::new(ErrorCode::ConfigInvalid, message))
        }
        Problem::Configuration(wrong) => {
            let message = format!("the database's URL cannot be used: {wrong}");
            Err(Error::new(ErrorCode::ConfigInvalid, message))
        }
        Problem::PoolTimedOut => Err(Error::new(
            ErrorCode::StoreUnavailable,
            format!("PostgreSQL did not answer within {PATIENCE:?}; does the server run?"),
        )),
        problem => Err(Error::new(
            ErrorCode::StoreUnavailable,
            format!("PostgreSQL cannot be reached; does the server run? {problem}"),
        )
        .with_source(problem)),
    }
}

/// Where a program has several kinds of cryptography, the driver's checks of certificates panic unless the
/// process has chosen one; that is ours if nobody was first.
fn choose_cryptography() {
    if CryptoProvider::get_default().is_none() {
        // Somebody else may be faster; theirs is as good.
        drop(aws_lc_rs::default_provider().install_default());
    }
}
