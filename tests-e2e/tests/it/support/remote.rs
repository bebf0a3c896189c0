//! The server of a story with a remote agent.

use helix_agents_test::ScriptedLlm;
use helix_agents_tests_e2e::scenarios::remote::{ADDRESS, NAME, server};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::sweep::blocking;

/// A server with the agent `clerk`. It stops when it is dropped.
pub(crate) struct Remote {
    address: String,
    model: ScriptedLlm,
    task: JoinHandle<()>,
}

impl Remote {
    /// Starts the server of a story, if its scenario has one.
    pub(crate) fn of(scenario: &str) -> Option<Self> {
        (scenario == NAME).then(|| {
            let entered = blocking().enter();
            let (server, model) = server().unwrap();
            drop(entered);
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            listener.set_nonblocking(true).unwrap();
            let address = format!("http://{}", listener.local_addr().unwrap());
            let task = blocking().spawn(async move {
                let listener = TcpListener::from_std(listener).unwrap();
                server.serve(listener, std::future::pending()).await.unwrap();
            });
            Self { address, model, task }
        })
    }

    /// Returns the environment variable that names the server.
    pub(crate) fn env(&self) -> (&'static str, String) {
        (ADDRESS, self.address.clone())
    }

    /// Returns the problem if the run at the server did not happen exactly once.
    pub(crate) fn problem(&self) -> Result<(), String> {
        match self.model.calls() {
            2 => Ok(()),
            calls => Err(format!("the model of the server was called {calls} times and not twice")),
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.task.abort();
    }
}
