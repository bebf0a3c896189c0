//! DBOS on the PostgreSQL test server.

use anyhow::{Result, ensure};
use dbos::{Config, DBOS, EngineOnly, StartOptions, Timeout, WorkflowRef};
use helix_agents_testkit::servers;

use super::effects;
use crate::job::Job;
use crate::measure::Runs;
use crate::measure::engine::{CONNECTIONS, SCHEMA};

/// Workflows of empty steps.
pub(in crate::measure) struct Workflows {
    steps: u32,
    workflow: WorkflowRef<u32, u32, EngineOnly>,
    _dbos: DBOS,
}

impl Workflows {
    pub(in crate::measure) async fn new(job: &Job) -> Result<Self> {
        let app = servers::unique();
        let dbos = DBOS::new(Config {
            app_version: Some(app.clone()),
            executor_id: Some(app.clone()),
            schema: SCHEMA.to_owned(),
            max_connections: CONNECTIONS,
            // Same setting as in the durable runtime.
            use_listen_notify: false,
            listen_queues: Some(Vec::new()),
            ..Config::new(app, servers::postgres())
        });
        let workflow = dbos.register_workflow("empty", |steps: u32| async move {
            for step in 0..steps {
                dbos::step(&step.to_string(), || async { Ok(()) }).await?;
            }
            Ok(steps)
        })?;
        dbos.launch().await?;
        Ok(Self { steps: effects(job.work), workflow, _dbos: dbos })
    }
}

impl Runs for Workflows {
    async fn once(&self) -> Result<()> {
        let options = StartOptions { timeout: Timeout::None, ..StartOptions::default() };
        let started = self.workflow.start_with(self.steps, options).await?;
        let steps = started.result().await?;
        ensure!(steps == self.steps, "{steps} steps were executed");
        Ok(())
    }
}
