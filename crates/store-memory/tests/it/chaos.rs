//! The store contracts with fault injection: responses arrive late or never, requests are lost, and
//! a retrying wrapper hides it.

mod conformance {
    use helix_agents_conformance::chaos::ChaosHarness;
    use helix_agents_conformance::store_suite::StoreHarness;

    async fn harness() -> impl StoreHarness {
        ChaosHarness::of(crate::conformance::harness().await)
    }

    helix_agents_conformance::store_suite!(harness);
}

mod stream {
    use helix_agents_conformance::chaos::ChaosHarness;
    use helix_agents_conformance::stream_suite::StreamHarness;

    async fn harness() -> impl StreamHarness {
        ChaosHarness::of(crate::stream::harness().await)
    }

    helix_agents_conformance::stream_suite!(harness);
}
