use std::sync::Mutex;

use rusteron_client::{Aeron, CountersReader, Handler};

fn keep(aeron: &Aeron, kept: &'static Mutex<Option<CountersReader<'static>>>) -> Handler {
    aeron.add_available_counter_handler(move |counters, _, _| {
        *kept.lock().unwrap() = Some(*counters);
    })
}

fn main() {}
