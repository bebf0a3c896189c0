//! Doc comments as models read them.

use quote::format_ident;
use syn::{ItemFn, parse_quote};

use super::of;

fn description(function: &ItemFn) -> String {
    of(&format_ident!("f"), &function.attrs, None).unwrap()
}

#[test]
fn lines_of_a_paragraph_are_joined_and_blank_lines_separate_paragraphs() {
    let text = description(&parse_quote! {
        ///
        ///  Search the catalogue
        ///  by name.
        ///
        ///
        /// Use it first.
        ///
        fn f() {}
    });
    assert_eq!(text, "Search the catalogue by name.\n\nUse it first.");
}

#[test]
fn lists_and_headings_keep_their_lines() {
    let text = description(&parse_quote! {
        /// Moves the robot:
        /// - `left` turns it,
        ///   by 90 degrees
        /// - `go` moves it
        ///
        /// # Order
        /// 1. first
        /// 2. second
        fn f() {}
    });
    assert_eq!(
        text,
        "Moves the robot:\n- `left` turns it, by 90 degrees\n- `go` moves it\n\n# Order\n1. first\n2. second"
    );
}

#[test]
fn fenced_code_is_kept_as_it_is() {
    let text = description(&parse_quote! {
        /// Runs a query such as
        /// ```sql
        /// select *
        ///
        ///   from t
        /// ```
        /// in the
        /// database.
        fn f() {}
    });
    assert_eq!(text, "Runs a query such as\n```sql\nselect *\n\n  from t\n```\nin the database.");
}

#[test]
fn block_comments_lose_their_stars() {
    let text = description(&parse_quote! {
        /**
         * Search the catalogue
         * by name.
         *
         * Use it first.
         */
        fn f() {}
    });
    assert_eq!(text, "Search the catalogue by name.\n\nUse it first.");
}

#[test]
fn other_doc_attributes_are_ignored() {
    let text = description(&parse_quote! {
        #[doc(hidden)]
        /// Search.
        fn f() {}
    });
    assert_eq!(text, "Search.");
}

#[test]
fn included_text_is_refused() {
    let function: ItemFn = parse_quote! {
        #[doc = include_str!("search.md")]
        fn f() {}
    };
    assert!(of(&format_ident!("f"), &function.attrs, None).is_err());
}

#[test]
fn a_given_description_wins_over_the_doc_comment() {
    let function: ItemFn = parse_quote! {
        /// Search.
        fn f() {}
    };
    let given = parse_quote!(" Find. ");
    let text = of(&format_ident!("f"), &function.attrs, Some(&given)).unwrap();
    assert_eq!(text, "Find.");
}
