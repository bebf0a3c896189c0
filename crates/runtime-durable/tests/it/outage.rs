//! Outages of DBOS's database while the session store is available.

use helix_agents_runtime::RuntimeBuilder as _;
use std::time::Duration;

use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::{RunStatus, load};
use helix_agents_test::{Gate, Reply, ScriptedLlm, within};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::support::{Count, TestApp, act, counting, registry, scratch, teller};

/// A proxy to the server that can be disconnected.
struct Proxy {
    url: String,
    is_up: watch::Sender<bool>,
}

impl Proxy {
    async fn to(url: &str) -> Self {
        let (user, place) = url.rsplit_once('@').unwrap();
        let (address, path) = place.split_once('/').unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap();
        let (is_up, mut up) = watch::channel(true);
        let address = address.to_owned();
        tokio::spawn(async move {
            let mut listener = listener;
            loop {
                let connected = up.clone();
                tokio::select! {
                    cut = up.wait_for(|up| !up) => drop(cut),
                    () = forward(&listener, &address, &connected) => {}
                }
                // Without a listener, connections are refused.
                drop(listener);
                if up.wait_for(|up| *up).await.is_err() {
                    return;
                }
                listener = TcpListener::bind(own).await.unwrap();
            }
        });
        Self { url: format!("{user}@{own}/{path}"), is_up }
    }

    fn cut(&self) {
        self.is_up.send_replace(false);
    }

    fn mend(&self) {
        self.is_up.send_replace(true);
    }
}

/// Forwards each connection until the proxy is disconnected.
async fn forward(listener: &TcpListener, address: &str, up: &watch::Receiver<bool>) {
    while let Ok((mut client, _)) = listener.accept().await {
        let (mut up, address) = (up.clone(), address.to_owned());
        tokio::spawn(async move {
            let mut server = TcpStream::connect(&address).await.unwrap();
            tokio::select! {
                copied = copy_bidirectional(&mut client, &mut server) => drop(copied),
                cut = up.wait_for(|up| !up) => drop(cut),
            }
        });
    }
}

fn in_session(id: &str) -> ExecuteOptions {
    ExecuteOptions::default().session(SessionId::from(id))
}

#[tokio::test]
async fn an_effect_that_ends_during_an_outage_is_recorded_later_and_not_repeated() {
    let (store, _folder) = scratch().await;
    let (app, gate, count) = (TestApp::new(), Gate::new(), Count::default());
    let proxy = Proxy::to(&app.url).await;
    let agent = teller().tool(counting(&count)).build().unwrap();
    let llm = ScriptedLlm::new([act().at_gate(&gate), Reply::text("done")]);
    let builder = app.builder().database(&proxy.url).store(store.clone()).llm(llm.clone());
    let runtime = builder.lease(Duration::from_secs(60)).connect().await.unwrap();
    let handle = runtime.execute(agent.erased(), "go".into(), in_session("s")).await.unwrap();
    gate.reached().await;
    proxy.cut();
    gate.open();
    // The log has the reply. DBOS keeps retrying its database.
    let replied = async {
        while load(&store, handle.session()).await.unwrap().last_step() == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    within(replied).await;
    assert_eq!(count.get(), 0);
    proxy.mend();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    assert_eq!((llm.calls(), count.get()), (2, 1));
    app.wait_for_statuses(&[("teller__s", "SUCCESS")]).await;
    within(runtime.shutdown()).await;
}

#[tokio::test]
async fn a_run_that_cannot_start_is_refused_and_can_be_resumed() {
    let (store, _folder) = scratch().await;
    let app = TestApp::new();
    let proxy = Proxy::to(&app.url).await;
    let agent = teller().build().unwrap();
    let llm = ScriptedLlm::new([Reply::text("done")]);
    let builder = || {
        let builder = app.builder().store(store.clone()).registry(registry(&agent));
        builder.lease(Duration::from_secs(1)).llm(llm.clone())
    };
    let first = builder().database(&proxy.url).connect().await.unwrap();
    proxy.cut();
    let refused = first.execute(agent.erased(), "go".into(), in_session("s")).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::StoreUnavailable, "{refused}");

    // The lease was released.
    let second = builder().connect().await.unwrap();
    let recovered = within(second.recover()).await.unwrap();
    assert_eq!(within(recovered[0].result()).await.unwrap().status, RunStatus::Completed);
    app.wait_for_statuses(&[("teller__s__resume-1", "SUCCESS")]).await;
    assert_eq!(llm.calls(), 1);
    proxy.mend();
    within(first.shutdown()).await;
    within(second.shutdown()).await;
}
