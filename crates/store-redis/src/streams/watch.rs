//! How readers hear that there is more: at once from writers of this store, and by messages of the server, on a
//! connection of its own, from those of others.
//!
//! Messages may be lost while the connection is. Readers look by themselves from time to time.

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

/// Between two tries to connect.
const PAUSE: Duration = Duration::from_millis(200);

/// Who reads which stream. While anybody reads, one task listens.
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
    /// How the listening task hears of new streams; none if there is none.
    listener: Option<mpsc::UnboundedSender<Wish>>,
}

#[derive(Debug, Default)]
struct Stream {
    readers: usize,
    written: Arc<Notify>,
}

/// What the listening task is to do.
#[derive(Debug)]
enum Wish {
    /// Listen to this channel, and say when.
    Listen(String, oneshot::Sender<()>),
    /// Look which channels are still needed.
    Tidy,
}

/// A reader's place in the table.
pub(super) struct Subscription {
    watch: Arc<Watch>,
    session: SessionId,
    written: Arc<Notify>,
}

impl Subscription {
    /// Returns once something may have been written since this was called.
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
                let _sent = readers.listener.as_ref().map(|it| it.send(Wish::Tidy));
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

    /// Returns once the server tells of writes, or if that takes too long: then the reader looks by itself.
    pub(super) async fn subscribe(self: &Arc<Self>, session: &SessionId) -> Subscription {
        let (subscription, listening) = self.enter(session);
        let _heard = tokio::time::timeout(self.timeout, listening).await;
        subscription
    }

    fn enter(self: &Arc<Self>, session: &SessionId) -> (Subscription, oneshot::Receiver<()>) {
        let mut readers = self.lock();
        let stream = readers.streams.entry(session.clone()).or_default();
        stream.readers += 1;
        let written = Arc::clone(&stream.written);
        let subscription =
            Subscription { watch: Arc::clone(self), session: session.clone(), written };
        let (told, listening) = oneshot::channel();
        let mut wish = Wish::Listen(self.keys.of(session).written(), told);
        if let Some(listener) = &readers.listener {
            match listener.send(wish) {
                Ok(()) => return (subscription, listening),
                // The executor that it ran on has ended.
                Err(unsent) => wish = unsent.0,
            }
        }
        let (listener, wishes) = mpsc::unbounded_channel();
        let _sent = listener.send(wish);
        readers.listener = Some(listener);
        tokio::spawn(Arc::clone(self).listen(wishes));
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

    /// Listens until nobody reads any more.
    async fn listen(self: Arc<Self>, mut wishes: mpsc::UnboundedReceiver<Wish>) {
        while !self.ends() {
            match tokio::time::timeout(self.timeout, self.client.get_async_pubsub()).await {
                Ok(Ok(connection)) => {
                    let (sink, messages) = connection.split();
                    self.hear(sink, messages, &mut wishes).await;
                }
                Ok(Err(error)) => tracing::debug!(%error, "cannot listen to Redis"),
                Err(_) => tracing::debug!("Redis does not answer who wants to listen"),
            }
            if !self.ends() {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// Whether nobody reads; then there is no listening task from now on.
    fn ends(&self) -> bool {
        let mut readers = self.lock();
        let ends = readers.streams.is_empty();
        if ends {
            readers.listener = None;
        }
        ends
    }

    /// Listens until the connection is lost, or nobody reads any more.
    async fn hear(
        &self,
        mut sink: PubSubSink,
        mut messages: PubSubStream,
        wishes: &mut mpsc::UnboundedReceiver<Wish>,
    ) {
        let mut heard: HashMap<String, SessionId> = HashMap::new();
        if self.follow(&mut sink, &mut heard).await.is_none() {
            return;
        }
        loop {
            tokio::select! {
                message = messages.next() => {
                    let Some(message) = message else { return };
                    if let Some(session) = heard.get(message.get_channel_name()) {
                        self.written(session);
                    }
                }
                wish = wishes.recv() => {
                    if self.is_idle() || self.follow(&mut sink, &mut heard).await.is_none() {
                        return;
                    }
                    if let Some(Wish::Listen(channel, told)) = wish
                        && heard.contains_key(&channel)
                    {
                        let _told = told.send(());
                    }
                }
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.lock().streams.is_empty()
    }

    /// Listens to what is read, and to nothing else; none if the connection is lost. Readers of new channels look
    /// once more: something may have been written before.
    async fn follow(
        &self,
        sink: &mut PubSubSink,
        heard: &mut HashMap<String, SessionId>,
    ) -> Option<()> {
        let wanted: HashMap<String, SessionId> = {
            let readers = self.lock();
            let sessions = readers.streams.keys();
            sessions.map(|it| (self.keys.of(it).written(), it.clone())).collect()
        };
        let gone: Vec<String> =
            heard.keys().filter(|it| !wanted.contains_key(*it)).cloned().collect();
        if !gone.is_empty() {
            sink.unsubscribe(&gone).await.ok()?;
            gone.iter().for_each(|it| drop(heard.remove(it)));
        }
        let new: Vec<(String, SessionId)> =
            wanted.into_iter().filter(|(it, _)| !heard.contains_key(it)).collect();
        if !new.is_empty() {
            let channels: Vec<&String> = new.iter().map(|(channel, _)| channel).collect();
            sink.subscribe(&channels).await.ok()?;
            for (channel, session) in new {
                self.written(&session);
                heard.insert(channel, session);
            }
        }
        Some(())
    }
}
