//! The contracts on a bad day: answers are late, lost, or never were, and a patient wrapper asks again.

mod conformance {
    use helix_agents_testkit::chaos::ChaosHarness;
    use helix_agents_testkit::store_suite::StoreHarness;

    async fn harness() -> impl StoreHarness {
        ChaosHarness::of(crate::conformance::harness().await)
    }

    helix_agents_testkit::store_suite!(harness);
}

mod stream {
    use helix_agents_testkit::chaos::ChaosHarness;
    use helix_agents_testkit::stream_suite::StreamHarness;

    async fn harness() -> impl StreamHarness {
        ChaosHarness::of(crate::stream::harness().await)
    }

    helix_agents_testkit::stream_suite!(harness);
}
