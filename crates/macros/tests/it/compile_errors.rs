//! What is wrong is said where it is wrong. `TRYBUILD=overwrite` rewrites what is expected.

#[test]
fn mistakes_are_named() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
