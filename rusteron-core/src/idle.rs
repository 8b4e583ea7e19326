//! Idle strategies: the action of a loop that found no work.

use std::ffi::CStr;
use std::fmt;
use std::hint;
use std::str::FromStr;
use std::thread;
use std::time::Duration;

/// The action of a duty cycle when it found no work.
///
/// The choice trades latency against processor time. Spinning reacts soonest, and needs a core for
/// itself. With fewer cores than spinning threads, the media driver's conductor starves. Then
/// everything that waits for the conductor starves, too.
///
/// ```
/// use rusteron_client::{Backoff, IdleStrategy, PollError, Subscription};
///
/// fn run(mut subscription: Subscription) -> Result<(), PollError> {
///     let mut idle = Backoff::default();
///     loop {
///         let fragments = subscription.poll(|message, _header| println!("{message:?}"), 10)?;
///         idle.idle(fragments);
///     }
/// }
/// ```
pub trait IdleStrategy {
    /// Idles if `work_count` is 0, and starts over otherwise. Call this after every duty cycle.
    fn idle(&mut self, work_count: usize);

    /// Starts over, as after work. By default, this calls [`idle`](Self::idle) with a work count of 1.
    fn reset(&mut self) {
        self.idle(1);
    }
}

/// Spins with the processor's pause instruction. It takes a whole core.
///
/// Corresponds to Aeron's strategy `spin`.
#[doc(alias = "BusySpinIdleStrategy")]
#[derive(Debug, Clone, Copy, Default)]
pub struct BusySpin;

impl IdleStrategy for BusySpin {
    #[inline]
    fn idle(&mut self, work_count: usize) {
        if work_count == 0 {
            hint::spin_loop();
        }
    }
}

/// Yields the rest of its time slice to any other thread that is ready, with one system call.
///
/// Corresponds to Aeron's strategy `yield`.
#[doc(alias = "YieldingIdleStrategy")]
#[derive(Debug, Clone, Copy, Default)]
pub struct Yielding;

impl IdleStrategy for Yielding {
    #[inline]
    fn idle(&mut self, work_count: usize) {
        if work_count == 0 {
            thread::yield_now();
        }
    }
}

/// Sleeps for a fixed time. The operating system adds its own granularity, often 50 µs.
///
/// Corresponds to Aeron's strategy `sleep-ns`.
#[doc(alias("SleepingIdleStrategy", "SleepingMillisIdleStrategy"))]
#[derive(Debug, Clone, Copy)]
pub struct Sleeping {
    period: Duration,
}

impl Sleeping {
    /// Sleeps for `period` each time.
    pub const fn new(period: Duration) -> Self {
        Self { period }
    }
}

impl Default for Sleeping {
    /// Returns a strategy with Aeron's default period, 1 µs.
    fn default() -> Self {
        Self::new(Duration::from_micros(1))
    }
}

impl IdleStrategy for Sleeping {
    #[inline]
    fn idle(&mut self, work_count: usize) {
        if work_count == 0 {
            thread::sleep(self.period);
        }
    }
}

/// Spins for a while, then yields for a while, then sleeps. Each sleep is twice as long, up to a
/// maximum.
///
/// Corresponds to Aeron's strategy `backoff`.
#[doc(alias = "BackoffIdleStrategy")]
#[derive(Debug, Clone)]
pub struct Backoff {
    max_spins: u64,
    max_yields: u64,
    min_park: Duration,
    max_park: Duration,
    state: BackoffState,
}

#[derive(Debug, Clone, Copy)]
enum BackoffState {
    NotIdle,
    Spinning(u64),
    Yielding(u64),
    Parking(Duration),
}

impl Backoff {
    /// Spins `max_spins` times, yields `max_yields` times, then sleeps. The first sleep lasts
    /// `min_park`. Each further sleep is twice as long, up to `max_park`.
    pub const fn new(
        max_spins: u64,
        max_yields: u64,
        min_park: Duration,
        max_park: Duration,
    ) -> Self {
        Self { max_spins, max_yields, min_park, max_park, state: BackoffState::NotIdle }
    }
}

impl Default for Backoff {
    /// Returns a strategy with Aeron's defaults: 10 spins, 20 yields, 1 µs to 1 ms.
    fn default() -> Self {
        Self::new(10, 20, Duration::from_micros(1), Duration::from_millis(1))
    }
}

impl IdleStrategy for Backoff {
    #[inline]
    fn idle(&mut self, work_count: usize) {
        if work_count > 0 { self.reset() } else { self.back_off() }
    }

    #[inline]
    fn reset(&mut self) {
        self.state = BackoffState::NotIdle;
    }
}

impl Backoff {
    fn back_off(&mut self) {
        self.state = match self.state {
            BackoffState::NotIdle => self.spin(0),
            BackoffState::Spinning(spins) => self.spin(spins),
            BackoffState::Yielding(yields) => self.yield_now(yields),
            BackoffState::Parking(period) => self.park(period),
        };
    }

    fn spin(&self, spins: u64) -> BackoffState {
        if spins >= self.max_spins {
            return self.yield_now(0);
        }
        hint::spin_loop();
        BackoffState::Spinning(spins + 1)
    }

    fn yield_now(&self, yields: u64) -> BackoffState {
        if yields >= self.max_yields {
            return self.park(self.min_park);
        }
        thread::yield_now();
        BackoffState::Yielding(yields + 1)
    }

    fn park(&self, period: Duration) -> BackoffState {
        thread::sleep(period);
        BackoffState::Parking(period.saturating_mul(2).min(self.max_park))
    }
}

/// Does nothing, so the loop around it spins. It takes a whole core.
///
/// Corresponds to Aeron's strategy `noop`.
#[doc(alias = "NoOpIdleStrategy")]
#[derive(Debug, Clone, Copy, Default)]
pub struct NoOp;

impl IdleStrategy for NoOp {
    #[inline]
    fn idle(&mut self, _work_count: usize) {}
}

/// Calls a function instead of idling. Made by [`idle_fn`].
#[derive(Clone, Copy)]
pub struct IdleFn<F>(F);

/// Returns a strategy that calls a function with the work count of each duty cycle.
///
/// Such a strategy can do the work that a wait on the same thread depends on, such as the work of a
/// media driver in the same loop:
///
/// ```
/// use rusteron_client::{IdleStrategy, idle_fn};
///
/// let mut cycles = 0;
/// let mut idle = idle_fn(|work_count| cycles += usize::from(work_count == 0));
/// idle.idle(0);
/// idle.idle(1);
/// assert_eq!(cycles, 1);
/// ```
pub fn idle_fn<F: FnMut(usize)>(function: F) -> IdleFn<F> {
    IdleFn(function)
}

impl<F: FnMut(usize)> IdleStrategy for IdleFn<F> {
    #[inline]
    fn idle(&mut self, work_count: usize) {
        (self.0)(work_count);
    }

    /// Does nothing: the function is called once per duty cycle.
    fn reset(&mut self) {}
}

crate::impl_debug!([F] IdleFn<F>);

/// Makes the enumerations of the strategies, by name and by value.
macro_rules! strategies {
    ($($(#[$doc:meta])+ $strategy:ident = $name:literal;)+) => {
        /// The strategies of this module by name, for options and settings.
        ///
        /// ```
        /// use rusteron_client::{IdleStrategy, IdleStrategyKind};
        ///
        /// let kind: IdleStrategyKind = "backoff".parse()?;
        /// let mut idle = kind.new_strategy();
        /// idle.idle(0);
        /// # Ok::<(), rusteron_client::UnknownIdleStrategy>(())
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum IdleStrategyKind {
            $($(#[$doc])+ $strategy,)+
        }

        impl IdleStrategyKind {
            /// All kinds.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$strategy),+];

            /// Returns the name for a setting in C. Only names of this list ever reach C: C would
            /// look up any other name as a function of the program, and call that function.
            #[doc(hidden)]
            pub const fn as_c_str(&self) -> &'static CStr {
                match self { $(Self::$strategy => $name,)+ }
            }

            /// Returns a strategy of this kind with its defaults.
            ///
            /// To idle between two calls of `Aeron::do_work`, use the kind that
            /// the client's context names.
            ///
            /// Corresponds to `aeron_main_idle_strategy`.
            #[doc(alias = "aeron_main_idle_strategy")]
            pub fn new_strategy(self) -> AnyIdleStrategy {
                match self { $(Self::$strategy => AnyIdleStrategy::$strategy($strategy::default()),)+ }
            }
        }

        /// A strategy chosen at run time, without a heap allocation.
        #[derive(Debug, Clone)]
        pub enum AnyIdleStrategy {
            $(#[doc = concat!("See [`", stringify!($strategy), "`].")] $strategy($strategy),)+
        }

        impl IdleStrategy for AnyIdleStrategy {
            #[inline]
            fn idle(&mut self, work_count: usize) {
                match self { $(Self::$strategy(strategy) => strategy.idle(work_count),)+ }
            }

            fn reset(&mut self) {
                match self { $(Self::$strategy(strategy) => strategy.reset(),)+ }
            }
        }
    };
}

strategies! {
    /// [`BusySpin`], called `spin`.
    BusySpin = c"spin";
    /// [`Yielding`], called `yield`.
    Yielding = c"yield";
    /// [`Sleeping`] for its default period, called `sleep-ns`.
    Sleeping = c"sleep-ns";
    /// [`Backoff`] with its defaults, called `backoff`.
    Backoff = c"backoff";
    /// [`NoOp`], called `noop`.
    NoOp = c"noop";
}

impl IdleStrategyKind {
    /// Returns Aeron's name for the strategy, which the media driver's settings also accept.
    pub const fn name(self) -> &'static str {
        match self.as_c_str().to_str() {
            Ok(name) => name,
            Err(_) => panic!("the names are ASCII"),
        }
    }

    /// Returns the kind with that name, if the name is in this list.
    #[doc(hidden)]
    pub fn from_c_str(name: &CStr) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_c_str() == name)
    }
}

impl fmt::Display for IdleStrategyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for IdleStrategyKind {
    type Err = UnknownIdleStrategy;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| UnknownIdleStrategy { name: name.to_owned() })
    }
}

/// The error for a name that is not the name of an [`IdleStrategyKind`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownIdleStrategy {
    name: String,
}

impl fmt::Display for UnknownIdleStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not an idle strategy; there are", self.name)?;
        for (index, kind) in IdleStrategyKind::ALL.into_iter().enumerate() {
            write!(f, "{} {kind}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownIdleStrategy {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_spins_yields_then_sleeps() {
        let mut backoff = Backoff::new(2, 1, Duration::from_nanos(1), Duration::from_nanos(4));
        let mut seen = Vec::new();
        for _ in 0..6 {
            backoff.idle(0);
            seen.push(match backoff.state {
                BackoffState::NotIdle => "not idle".to_owned(),
                BackoffState::Spinning(spins) => format!("spin {spins}"),
                BackoffState::Yielding(yields) => format!("yield {yields}"),
                BackoffState::Parking(next) => format!("park, next {}", next.as_nanos()),
            });
        }
        assert_eq!(
            seen,
            ["spin 1", "spin 2", "yield 1", "park, next 2", "park, next 4", "park, next 4"]
        );
        backoff.idle(1);
        assert!(matches!(backoff.state, BackoffState::NotIdle));
    }

    #[test]
    fn strategies_without_a_reset_start_over_as_after_work() {
        struct Idles(u32);
        impl IdleStrategy for Idles {
            fn idle(&mut self, work_count: usize) {
                self.0 = if work_count == 0 { self.0 + 1 } else { 0 };
            }
        }
        let mut idles = Idles(0);
        idles.idle(0);
        assert_eq!(idles.0, 1);
        idles.reset();
        assert_eq!(idles.0, 0);
        idle_fn(|_| panic!("not a duty cycle")).reset();
    }

    #[test]
    fn kinds_are_found_by_name() {
        for kind in IdleStrategyKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
            assert_eq!(IdleStrategyKind::from_c_str(kind.as_c_str()), Some(kind));
        }
        let error = "sleepy".parse::<IdleStrategyKind>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"sleepy\" is not an idle strategy; there are spin, yield, sleep-ns, backoff, noop"
        );
    }

    #[test]
    fn work_keeps_sleeping_from_sleeping() {
        // If it slept, it would not return before the test's deadline.
        Sleeping::new(Duration::from_secs(u64::MAX)).idle(1);
    }
}
