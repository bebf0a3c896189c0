//! What the fold knows of children.

use std::sync::Arc;

use super::Session;
use crate::event::ChildStart;

impl Session {
    /// The children of calls that have no result, in call order.
    pub fn open_children(&self) -> impl Iterator<Item = &Arc<ChildStart>> {
        let calls = self.open_step().map_or(&[][..], |step| &step.calls);
        let open = calls.iter().filter(|call| call.finish.is_none());
        open.filter_map(|call| call.child.as_ref().map(|child| &child.start))
    }
}
