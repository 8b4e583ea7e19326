//! Idle strategies: the action of a loop that found no work.

use std::ffi::CStr;
use std::fmt;
use std::hint;
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

/// The action of a duty cycle when it found no work.
///
/// The choice trades latency against processor time. Spinning reacts soonest, and needs a core for
/// itself. With fewer cores than spinning threads, the media driver's conductor starves. Then
/// everything that waits for the conductor starves, too. `docs/benchmarks/idling.md` in the repository
/// says how to choose bounds, and how to measure latency and processor time by rate.
///
/// A loop that waits for one answer calls [`reset`](Self::reset) before each wait. Otherwise the wait
/// goes on with the longest sleep of the last one.
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
/// Its bounds trade latency against processor time:
///
/// - Work that comes while it spins or yields is found at once. [`awake_for`](Self::awake_for) sets
///   how long that is after the last work.
/// - Work that comes later is found after the longest sleep at most.
/// - [`max_percent`](Self::max_percent) limits the processor time of yielding without work.
///
/// ```
/// use std::time::{Duration, Instant};
/// use rusteron_client::Backoff;
///
/// // At once within 500 µs of the last work, else within 100 µs and the system's timer slack; yields
/// // for a fifth of a core at most.
/// let idle = Backoff::new(10, 20, Duration::from_micros(1), Duration::from_micros(100))
///     .awake_for(Duration::from_micros(500))
///     .max_percent(20);
/// ```
///
/// Corresponds to Aeron's strategy `backoff`.
#[doc(alias = "BackoffIdleStrategy")]
#[derive(Debug, Clone)]
pub struct Backoff {
    max_spins: u64,
    max_yields: u64,
    min_park: Duration,
    max_park: Duration,
    max_percent: u8,
    awake: Option<Awake>,
    state: BackoffState,
}

#[derive(Debug, Clone, Copy)]
enum BackoffState {
    NotIdle,
    Spinning(u64),
    Yielding(u64),
    /// Yields since this time.
    Awake(Instant),
    Parking(Duration),
}

/// The action of a backoff without work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Spin,
    Yield,
    Park(Duration),
}

impl Backoff {
    /// Spins `max_spins` times, yields `max_yields` times, then sleeps. The first sleep lasts
    /// `min_park`. Each further sleep is twice as long, up to `max_park`.
    ///
    /// The operating system adds its own granularity to each sleep, often 50 µs.
    pub const fn new(
        max_spins: u64,
        max_yields: u64,
        min_park: Duration,
        max_park: Duration,
    ) -> Self {
        let state = BackoffState::NotIdle;
        Self { max_spins, max_yields, min_park, max_park, max_percent: 100, awake: None, state }
    }

    /// Yields until `duration` has passed without work, rather than a number of times. It reads the
    /// clock at each yield.
    ///
    /// Without work for long, this takes no processor time: `duration` counts once after each work.
    pub const fn awake_for(mut self, duration: Duration) -> Self {
        self.awake = Some(Awake { duration, credit: duration, last: None });
        self
    }

    /// Limits the time of [`awake_for`](Self::awake_for) to a share of the elapsed time, in percent
    /// of a core. Has no effect without that.
    ///
    /// Time awake without work that was not used is saved up to the duration of `awake_for`, so a
    /// burst of messages after a pause has all of it. Spinning, work and sleeping are not counted;
    /// each sleep takes some microseconds of processor time. Values above 100 are 100.
    pub const fn max_percent(mut self, percent: u8) -> Self {
        self.max_percent = if percent > 100 { 100 } else { percent };
        self
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
        match self.next(Instant::now) {
            Action::Spin => hint::spin_loop(),
            Action::Yield => thread::yield_now(),
            Action::Park(period) => thread::sleep(period),
        }
    }

    fn next(&mut self, now: impl FnOnce() -> Instant) -> Action {
        let (state, action) = match self.state {
            BackoffState::NotIdle => self.spin(0, now),
            BackoffState::Spinning(spins) => self.spin(spins, now),
            BackoffState::Yielding(yields) => self.yield_now(yields),
            BackoffState::Awake(since) => self.stay_awake(Some(since), now()),
            BackoffState::Parking(period) => self.park(period),
        };
        self.state = state;
        action
    }

    fn spin(&mut self, spins: u64, now: impl FnOnce() -> Instant) -> (BackoffState, Action) {
        match self.awake {
            _ if spins < self.max_spins => (BackoffState::Spinning(spins + 1), Action::Spin),
            Some(_) => self.stay_awake(None, now()),
            None => self.yield_now(0),
        }
    }

    fn yield_now(&self, yields: u64) -> (BackoffState, Action) {
        if yields >= self.max_yields {
            return self.park(self.min_park);
        }
        (BackoffState::Yielding(yields + 1), Action::Yield)
    }

    fn stay_awake(&mut self, since: Option<Instant>, now: Instant) -> (BackoffState, Action) {
        let percent = self.max_percent;
        let may_yield =
            self.awake.as_mut().is_some_and(|awake| awake.may_yield(percent, since, now));
        if !may_yield {
            return self.park(self.min_park);
        }
        (BackoffState::Awake(since.unwrap_or(now)), Action::Yield)
    }

    fn park(&self, period: Duration) -> (BackoffState, Action) {
        let next = period.saturating_mul(2).min(self.max_park);
        (BackoffState::Parking(next), Action::Park(period))
    }
}

/// The bounds of yielding by time.
#[derive(Debug, Clone, Copy)]
struct Awake {
    duration: Duration,
    /// The time awake that may still be used.
    credit: Duration,
    /// The last time at which the clock was read.
    last: Option<Instant>,
}

impl Awake {
    /// Returns whether it may yield at a time, awake `since` another or just beginning to be.
    fn may_yield(&mut self, percent: u8, since: Option<Instant>, now: Instant) -> bool {
        let elapsed = self.last.map_or(Duration::ZERO, |last| now.saturating_duration_since(last));
        self.last = Some(now);
        let earned = elapsed.saturating_mul(percent.into()) / 100;
        let Some(since) = since else {
            self.credit = self.credit.saturating_add(earned).min(self.duration);
            return !self.credit.is_zero();
        };
        self.credit = self.credit.saturating_sub(elapsed - earned);
        !self.credit.is_zero() && now.saturating_duration_since(since) < self.duration
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
#[derive(Clone, PartialEq, Eq)]
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

crate::debug_as_display!(UnknownIdleStrategy);

impl std::error::Error for UnknownIdleStrategy {}

#[cfg(test)]
mod tests {
    use super::*;

    const MICROSECOND: Duration = Duration::from_micros(1);

    /// The actions without work at times in µs.
    fn actions(backoff: &mut Backoff, times: &[u32]) -> Vec<Action> {
        let start = *START;
        times.iter().map(|time| backoff.next(|| start + MICROSECOND * *time)).collect()
    }

    static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);

    #[test]
    fn backoff_spins_yields_then_sleeps() {
        let mut backoff = Backoff::new(2, 1, MICROSECOND, MICROSECOND * 4);
        let expected =
            [Action::Spin, Action::Spin, Action::Yield].into_iter().chain([1, 2, 4, 4].map(park));
        assert_eq!(actions(&mut backoff, &[0; 7]), expected.collect::<Vec<_>>());
        backoff.idle(1);
        assert_eq!(actions(&mut backoff, &[0]), [Action::Spin]);
    }

    fn park(micros: u32) -> Action {
        Action::Park(MICROSECOND * micros)
    }

    #[test]
    fn backoff_is_awake_for_a_time_after_work() {
        let mut backoff =
            Backoff::new(1, 0, MICROSECOND, MICROSECOND * 4).awake_for(MICROSECOND * 100);
        for start in [0, 1_000, 1_001] {
            backoff.reset();
            assert_eq!(
                actions(
                    &mut backoff,
                    &[0, start, start + 50, start + 99, start + 100, start + 110]
                ),
                [Action::Spin, Action::Yield, Action::Yield, Action::Yield, park(1), park(2)]
            );
        }
    }

    #[test]
    fn backoff_awake_without_work_takes_a_share() {
        let mut backoff = Backoff::new(0, 0, MICROSECOND, MICROSECOND)
            .awake_for(MICROSECOND * 1_000)
            .max_percent(10);
        let mut yields = 0;
        // Work each 100 µs for a second; between, a look at each µs while it is awake.
        for time in 0..1_000_000 {
            if time % 100 == 0 {
                backoff.reset();
            }
            if !matches!(backoff.state, BackoffState::Parking(_)) {
                yields += u32::from(actions(&mut backoff, &[time]) == [Action::Yield]);
            }
        }
        // A tenth of the time, what was saved at the beginning, and a yield after each work.
        assert!((100_000..=112_000).contains(&yields), "{yields}");
    }

    #[test]
    fn backoff_saves_time_awake_up_to_its_duration() {
        let mut backoff = Backoff::new(0, 0, MICROSECOND, MICROSECOND)
            .max_percent(50)
            .awake_for(MICROSECOND * 100);
        assert_eq!(
            actions(&mut backoff, &[0, 50, 99, 100]),
            [Action::Yield, Action::Yield, Action::Yield, park(1)]
        );
        // Half of 10 µs are saved in addition to the 50 µs that are left, and then to 5 µs.
        for (start, end) in [(110, 210), (220, 240)] {
            backoff.reset();
            assert_eq!(
                actions(&mut backoff, &[start, end - 1, end]),
                [Action::Yield, Action::Yield, park(1)]
            );
        }
        backoff.reset();
        assert_eq!(actions(&mut backoff, &[1_000_000, 1_000_099]), [Action::Yield; 2]);
    }

    #[test]
    fn backoff_limits_what_is_out_of_range() {
        assert_eq!(Backoff::default().max_percent(255).max_percent, 100);
        let mut backoff = Backoff::default().awake_for(Duration::ZERO).max_percent(0);
        assert_eq!(actions(&mut backoff, &[0; 11])[10], park(1));
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
