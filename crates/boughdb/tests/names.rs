//! One name, one item: what the modules of the library export under one name is one and the same thing.
//!
//! The compiler does the check: of two different items that meet under one name here, it says so.
#![deny(ambiguous_glob_reexports)]

/// Everything that a program can name.
pub mod everything {
    pub use boughdb::api::*;
    pub use boughdb::recording::*;
    pub use boughdb::*;
}

#[test]
fn the_types_of_messages_are_those_of_the_crate() {
    let message: everything::AgentMessage = boughdb::user("Hello");
    assert_eq!(message.text(), "Hello");
}
