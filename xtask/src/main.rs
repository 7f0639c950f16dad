//! The one entry point for developers.
fn main() {}
