//! Runs each loop once, for callgrind to count, and prints the number of messages.

use benchmark_calls::{MESSAGES, run};

fn main() -> Result<(), rusteron_client::Error> {
    run(|_, measured| measured())?;
    println!("{MESSAGES}");
    Ok(())
}
