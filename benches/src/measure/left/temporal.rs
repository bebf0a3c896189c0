//! The footprint of runs in the histories of Temporal's workflows.

use anyhow::{Context as _, Result};
use helix_agents::store::Head;
use helix_agents_testkit::servers;
use temporalio_client::{
    Client, ClientOptions, Connection, ConnectionOptions, UntypedWorkflow, WorkflowDescribeOptions,
    WorkflowGetResultOptions, WorkflowHandle,
};

use crate::job::EngineTraces;
use crate::measure::engine::Namespace;

/// Returns the footprint of a session with one run, after its workflow has ended.
pub(super) async fn left(namespace: &Namespace, head: &Head) -> Result<EngineTraces> {
    let target: reqwest::Url =
        servers::temporal().parse().context("the address of the Temporal server is invalid")?;
    let connection = Connection::connect(ConnectionOptions::new(target).build()).await?;
    let client = Client::new(connection, ClientOptions::new("default").build())?;
    let id = format!("{}__adder__{}", namespace.name, head.session);
    let workflow: WorkflowHandle<Client, UntypedWorkflow> = client.get_workflow_handle(id);
    workflow.get_result(WorkflowGetResultOptions::default()).await?;
    let seen = workflow.describe(WorkflowDescribeOptions::default()).await?;
    let info = seen
        .raw()
        .workflow_execution_info
        .as_ref()
        .context("the description has no execution info")?;
    let number = |number: i64| u64::try_from(number).context("a size is negative");
    Ok(EngineTraces { rows: number(info.history_length)?, bytes: number(info.history_size_bytes)? })
}
