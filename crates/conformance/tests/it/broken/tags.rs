//! The index of tags of a broken store.

use std::sync::atomic::Ordering;

use helix_agents_core::error::Result;
use helix_agents_core::id::SessionId;
use helix_agents_core::store::{
    MAX_PAGE, NewSession, Page, SessionFilter, SessionUsage, StateStore as _,
};

use super::{Breakage, Broken, TagMistake};

impl Broken {
    fn tag_mistake(&self) -> Option<TagMistake> {
        match self.breakage() {
            Some(Breakage::Tags(mistake)) => Some(mistake),
            _ => None,
        }
    }

    /// Returns the new session as the reference store accepts it.
    pub(super) fn accepted(&self, mut new: NewSession) -> NewSession {
        if matches!(self.tag_mistake(), Some(TagMistake::Unchecked)) && new.check().is_err() {
            new.tags.clear();
        }
        new
    }

    /// Adds a session to the index in the broken way. `from` is the original of a fork.
    pub(super) async fn add_tags(
        &self,
        session: &SessionId,
        new: &NewSession,
        was_taken: bool,
        from: Option<&SessionId>,
    ) {
        let Some(mistake) = self.tag_mistake() else { return };
        if matches!(mistake, TagMistake::Later) {
            self.wait_for_look().await;
        }
        let mut tags: Vec<_> = new.tags.clone().into_iter().collect();
        if let TagMistake::UpTo(most) = mistake {
            tags.truncate(most);
        }
        let mut index = self.shared.tags.lock().unwrap();
        match mistake {
            TagMistake::Forked => {
                tags.extend(from.and_then(|from| index.get(from).cloned()).unwrap_or_default());
            }
            TagMistake::Kept => tags.extend(index.get(session).cloned().unwrap_or_default()),
            TagMistake::OfRefused if !was_taken => {
                index.entry(session.clone()).or_default().append(&mut tags);
            }
            _ => {}
        }
        if was_taken {
            index.insert(session.clone(), tags);
        }
    }

    /// Lists by tag in the broken way. Returns `None` if the store has no mistake with tags, or the filter no tags.
    pub(super) async fn list_tagged(
        &self,
        filter: &SessionFilter,
        page: &Page,
    ) -> Result<Option<Vec<SessionUsage>>> {
        let Some(mistake) = self.tag_mistake().filter(|_| !filter.tags.is_empty()) else {
            return Ok(None);
        };
        if !matches!(mistake, TagMistake::Unchecked) {
            filter.check()?;
        }
        let mut others = filter.clone();
        let tags = std::mem::take(&mut others.tags);
        let mut all = Page { limit: MAX_PAGE, ..page.clone() };
        match mistake {
            TagMistake::OthersIgnored => others = SessionFilter::new(),
            TagMistake::Unpaged => all.after = None,
            _ => {}
        }
        let mut found = self.shared.sessions.list_usage(&others, &all).await?;
        let compared = match mistake {
            TagMistake::Ignored => 0,
            TagMistake::FirstOnly => 1,
            _ => tags.len(),
        };
        let is_equal = |one: &str, other: &str| match mistake {
            TagMistake::Values(loss) => loss(one) == loss(other),
            _ => one == other,
        };
        let index = self.shared.tags.lock().unwrap();
        found.retain(|found| {
            let own = index.get(&found.head.session).map_or(&[][..], Vec::as_slice);
            let has = |(key, value): (&String, &String)| {
                own.iter().any(|tag| tag.0 == *key && is_equal(&tag.1, value))
            };
            tags.iter().take(compared).all(has)
        });
        self.shared.looks.fetch_add(1, Ordering::SeqCst);
        found.truncate(page.limit as usize);
        Ok(Some(found))
    }
}
