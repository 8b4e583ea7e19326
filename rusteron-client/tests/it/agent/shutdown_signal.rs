//! A signal for threads.

use std::thread;
use std::time::Duration;

use rusteron_client::agent::ShutdownSignal;
use rusteron_test_support::DEADLINE;

#[test]
fn signal_wakes_all_waiting_threads() {
    let signal = ShutdownSignal::new();
    thread::scope(|scope| {
        let waiting = [(); 4].map(|()| {
            let signal = signal.clone();
            scope.spawn(move || signal.wait())
        });
        let limited = scope.spawn(|| signal.wait_timeout(DEADLINE));
        assert!(!signal.is_signalled());
        signal.signal();
        signal.signal();
        for thread in waiting {
            thread.join().expect("woken");
        }
        assert!(limited.join().expect("woken"));
    });
    assert!(signal.is_signalled() && signal.clone().is_signalled());
}

#[test]
fn wait_timeout_ends_without_signal() {
    let signal = ShutdownSignal::default();
    assert!(!signal.wait_timeout(Duration::ZERO));
    assert!(!signal.wait_timeout(Duration::from_millis(1)));
    signal.signal();
    assert!(signal.wait_timeout(Duration::ZERO));
    assert!(signal.wait_timeout(Duration::MAX));
    signal.wait();
}
