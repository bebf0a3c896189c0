//! Turns of sessions that were deleted in the meantime.

use std::sync::Arc;

use helix_agents_core::agent::Agent;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::Input;
use helix_agents_core::store::StateStore as _;

use super::continue_child;
use crate::hook_chain::HookChain;
use crate::testing::{Scene, store};

/// A message to a companion may arrive after the companion was deleted with its tree. It must not create a session.
#[tokio::test]
async fn a_turn_of_a_deleted_child_is_not_started() {
    let scene = Scene::new(store(), []);
    let agent = Agent::builder("child").system_prompt("You help.").model("scripted");
    let agent = agent.build().unwrap().erased();
    let (input, child) = (Input::from("Go on."), "child".into());
    let (run, above) = ("run".into(), HookChain::none());
    let turn = continue_child(&scene.runtime, Arc::clone(&agent), &input, &child, &run, &above);
    assert_eq!(turn.await.unwrap_err().code(), ErrorCode::SessionNotFound);
    assert_eq!(scene.store.head(&child).await.unwrap(), None);
}
