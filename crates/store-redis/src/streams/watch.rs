//! Notification of readers: immediate for writes of this store, and by server messages on a
//! separate connection for writes of other stores.
//!
//! Messages may be lost with the connection, so readers also poll.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use redis::Client;
use redis::aio::{PubSubSink, PubSubStream};
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, mpsc, oneshot};

use helix_agents_core::id::SessionId;

use crate::keys::Keys;

/// The pause between two connection attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// The readers of each stream. While there are readers, one task listens.
pub(crate) struct Watch {
    client: Client,
    keys: Keys,
    timeout: Duration,
    readers: Mutex<Readers>,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("readers", &self.readers).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Readers {
    streams: HashMap<SessionId, Stream>,
    /// The channel to the listening task; `None` if there is no task.
    listener: Option<mpsc::UnboundedSender<ListenerCommand>>,
}

#[derive(Debug, Default)]
struct Stream {
    readers: usize,
    written: Arc<Notify>,
}

/// A command to the listening task.
#[derive(Debug)]
enum ListenerCommand {
    /// Subscribe to this channel and confirm.
    Listen(String, oneshot::Sender<()>),
    /// Unsubscribe from channels that are no longer needed.
    Refresh,
}

/// A reader's registration.
pub(super) struct Subscription {
    watch: Arc<Watch>,
    session: SessionId,
    written: Arc<Notify>,
}

impl Subscription {
    /// Returns a future that resolves once the stream may have been written to after this call.
    pub(super) fn written(&self) -> Notified<'_> {
        self.written.notified()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut readers = self.watch.lock();
        if let Some(stream) = readers.streams.get_mut(&self.session) {
            stream.readers -= 1;
            if stream.readers == 0 {
                readers.streams.remove(&self.session);
                let _sent = readers
                    .listener
                    .as_ref()
                    .map(|listener| listener.send(ListenerCommand::Refresh));
            }
        }
    }
}

impl Watch {
    pub(crate) fn new(client: Client, keys: Keys, timeout: Duration) -> Self {
        Self { client, keys, timeout, readers: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Readers> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a reader. Returns once the server sends notifications for the stream, or after a
    /// timeout, in which case the reader relies on polling.
    pub(super) async fn subscribe(self: &Arc<Self>, session: &SessionId) -> Subscription {
        let (subscription, listening) = self.register(session);
        let _confirmed = tokio::time::timeout(self.timeout, listening).await;
        subscription
    }

    fn register(self: &Arc<Self>, session: &SessionId) -> (Subscription, oneshot::Receiver<()>) {
        let mut readers = self.lock();
        let stream = readers.streams.entry(session.clone()).or_default();
        stream.readers += 1;
        let written = Arc::clone(&stream.written);
        let subscription =
            Subscription { watch: Arc::clone(self), session: session.clone(), written };
        let (confirm, listening) = oneshot::channel();
        let mut command = ListenerCommand::Listen(self.keys.of(session).written(), confirm);
        if let Some(listener) = &readers.listener {
            match listener.send(command) {
                Ok(()) => return (subscription, listening),
                // The tokio runtime of the listening task was shut down.
                Err(unsent) => command = unsent.0,
            }
        }
        let (listener, commands) = mpsc::unbounded_channel();
        let _sent = listener.send(command);
        readers.listener = Some(listener);
        tokio::spawn(Arc::clone(self).listen(commands));
        (subscription, listening)
    }

    /// Wakes the readers of a stream.
    pub(crate) fn written(&self, session: &SessionId) {
        if let Some(stream) = self.lock().streams.get(session) {
            stream.written.notify_waiters();
        }
    }

    /// Wakes all readers, so that they notice that the store was closed.
    pub(crate) fn wake(&self) {
        for stream in self.lock().streams.values() {
            stream.written.notify_waiters();
        }
    }

    /// Listens until there are no more readers.
    async fn listen(self: Arc<Self>, mut commands: mpsc::UnboundedReceiver<ListenerCommand>) {
        while !self.ends() {
            match tokio::time::timeout(self.timeout, self.client.get_async_pubsub()).await {
                Ok(Ok(connection)) => {
                    let (sink, messages) = connection.split();
                    self.receive(sink, messages, &mut commands).await;
                }
                Ok(Err(error)) => {
                    tracing::debug!(%error, "cannot listen for notifications of Redis")
                }
                Err(_) => tracing::debug!(
                    "Redis did not answer a connection attempt for notifications in time"
                ),
            }
            if !self.ends() {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// Returns `true` if there are no more readers. The listening task then ends.
    fn ends(&self) -> bool {
        let mut readers = self.lock();
        let ends = readers.streams.is_empty();
        if ends {
            readers.listener = None;
        }
        ends
    }

    /// Listens until the connection is lost or there are no more readers.
    async fn receive(
        &self,
        mut sink: PubSubSink,
        mut messages: PubSubStream,
        commands: &mut mpsc::UnboundedReceiver<ListenerCommand>,
    ) {
        let mut subscribed: HashMap<String, SessionId> = HashMap::new();
        if self.resubscribe(&mut sink, &mut subscribed).await.is_none() {
            return;
        }
        loop {
            tokio::select! {
                message = messages.next() => {
                    let Some(message) = message else { return };
                    if let Some(session) = subscribed.get(message.get_channel_name()) {
                        self.written(session);
                    }
                }
                command = commands.recv() => {
                    if self.is_idle() || self.resubscribe(&mut sink, &mut subscribed).await.is_none() {
                        return;
                    }
                    if let Some(ListenerCommand::Listen(channel, confirm)) = command
                        && subscribed.contains_key(&channel)
                    {
                        let _sent = confirm.send(());
                    }
                }
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.lock().streams.is_empty()
    }

    /// Subscribes to the channels of current readers and unsubscribes from all others. Returns
    /// `None` if the connection is lost. Wakes the readers of new channels, because writes before
    /// the subscription were not announced.
    async fn resubscribe(
        &self,
        sink: &mut PubSubSink,
        subscribed: &mut HashMap<String, SessionId>,
    ) -> Option<()> {
        let needed: HashMap<String, SessionId> = {
            let readers = self.lock();
            let sessions = readers.streams.keys();
            sessions.map(|session| (self.keys.of(session).written(), session.clone())).collect()
        };
        let unneeded: Vec<String> =
            subscribed.keys().filter(|channel| !needed.contains_key(*channel)).cloned().collect();
        if !unneeded.is_empty() {
            sink.unsubscribe(&unneeded).await.ok()?;
            unneeded.iter().for_each(|channel| drop(subscribed.remove(channel)));
        }
        let new: Vec<(String, SessionId)> =
            needed.into_iter().filter(|(channel, _)| !subscribed.contains_key(channel)).collect();
        if !new.is_empty() {
            let channels: Vec<&String> = new.iter().map(|(channel, _)| channel).collect();
            sink.subscribe(&channels).await.ok()?;
            for (channel, session) in new {
                self.written(&session);
                subscribed.insert(channel, session);
            }
        }
        Some(())
    }
}
