//! Runs one kernel a given number of times and nothing else, for a count of its instructions.

fn main() {}
