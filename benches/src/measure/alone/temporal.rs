//! The Temporal test server with a worker in this process.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use helix_agents_testkit::servers;
use temporalio_client::{
    Client, ClientOptions, Connection, ConnectionOptions, GrpcCompression,
    WorkflowGetResultOptions, WorkflowStartOptions,
};
use temporalio_macros::{activities, workflow, workflow_methods};
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use temporalio_sdk::runtime::RuntimeOptions;
use temporalio_sdk::{
    ActivityOptions, Runtime, Worker, WorkerOptions, WorkflowContext, WorkflowResult,
};
use tokio::runtime::Handle;

use super::effects;
use crate::job::Job;
use crate::measure::Runs;

/// Workflows of empty activities.
pub(in crate::measure) struct Workflows {
    steps: u32,
    client: Client,
    queue: String,
    stop: Arc<dyn Fn() + Send + Sync>,
}

#[derive(Debug)]
struct Empty;

#[activities]
impl Empty {
    #[activity(name = "nothing")]
    #[expect(clippy::unused_async, reason = "an activity on the worker's executor is async")]
    async fn nothing(
        self: Arc<Self>,
        _cx: ActivityContext,
        _step: u32,
    ) -> Result<(), ActivityError> {
        Ok(())
    }
}

#[workflow]
#[derive(Debug, Default)]
struct EmptyRun;

#[workflow_methods]
impl EmptyRun {
    #[run(name = "empty")]
    async fn run(cx: &mut WorkflowContext<Self>, steps: u32) -> WorkflowResult<u32> {
        for step in 0..steps {
            let options = ActivityOptions::with_start_to_close_timeout(Duration::from_secs(60));
            let options = options.activity_id(step.to_string()).build();
            cx.execute_activity(Empty::nothing, step, options).await?;
        }
        Ok(steps)
    }
}

impl Workflows {
    pub(in crate::measure) async fn new(job: &Job) -> Result<Self> {
        let target: reqwest::Url = servers::temporal().parse()?;
        let options = ConnectionOptions::new(target).grpc_compression(GrpcCompression::None);
        let connection = Connection::connect(options.build()).await?;
        let client = Client::new(connection, ClientOptions::new("default").build())?;
        let queue = servers::unique();
        let options = WorkerOptions::new(&*queue).register_workflow::<EmptyRun>()?;
        let options = options.register_activities(Empty).build();
        let (here, for_worker) = (Handle::current(), client.clone());
        let (started, starts) = tokio::sync::oneshot::channel();
        thread::spawn(move || {
            here.block_on(async move {
                let sdk = Runtime::from_current_tokio(RuntimeOptions::default())?;
                let mut worker = Worker::new(&sdk, for_worker, options)?;
                drop(started.send(worker.shutdown_handle()));
                anyhow::Ok(worker.run().await?)
            })
        });
        let stop = starts.await.context("the worker did not start")?;
        Ok(Self { steps: effects(job.work), client, queue, stop: Arc::new(stop) })
    }
}

impl Runs for Workflows {
    async fn once(&self) -> Result<()> {
        let options = WorkflowStartOptions::new(&*self.queue, servers::unique()).build();
        let workflow = self.client.start_workflow(EmptyRun::run, self.steps, options).await?;
        let steps = workflow.get_result(WorkflowGetResultOptions::default()).await?;
        ensure!(steps == self.steps, "{steps} activities were executed");
        Ok(())
    }
}

impl Drop for Workflows {
    fn drop(&mut self) {
        (self.stop)();
    }
}
