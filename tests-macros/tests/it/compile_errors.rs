//! Mistakes are reported where they are. `TRYBUILD=overwrite` updates the expected output.

#[test]
fn mistakes_are_reported() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
