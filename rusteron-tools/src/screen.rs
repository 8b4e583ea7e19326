//! Reports as a full screen, redrawn in place.

use std::io::{self, Stdout, Write};
use std::time::{Duration, Instant};

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::queue;
use crossterm::terminal::{self, Clear, ClearType};
use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::Failure;

use crate::report::{self, Report};

/// The terminal as one screen. Dropping the screen restores the terminal.
pub(crate) struct Screen {
    out: Stdout,
    /// The first line of the body that is shown.
    first: usize,
    /// The first column of the body that is shown.
    left: usize,
}

/// A request of the user, or of the timer.
enum Request {
    /// Take another report.
    Sample,
    /// Draw the same report again, after scrolling or resizing.
    Redraw,
    /// End the program.
    Quit,
}

impl Screen {
    pub(crate) fn enter() -> Result<Self, Failure> {
        terminal::enable_raw_mode()
            .map_err(|error| Failure::run("cannot use the terminal for a full screen", error))?;
        // From here on, dropping the screen restores the terminal.
        let mut screen = Self { out: io::stdout(), first: 0, left: 0 };
        queue!(screen.out, terminal::EnterAlternateScreen, terminal::DisableLineWrap, Hide)?;
        Ok(screen)
    }

    /// Shows a report after each interval, until the user quits or the terminal is gone.
    pub(crate) fn show<R: Report>(
        mut self,
        shutdown: &ShutdownSignal,
        interval: Duration,
        sample: impl FnMut() -> Result<R, Failure>,
    ) -> Result<(), Failure> {
        match self.show_reports(shutdown, interval, sample) {
            // The failure says only that the terminal is gone.
            Err(_) if self.is_hung_up() => Ok(()),
            outcome => outcome,
        }
    }

    fn show_reports<R: Report>(
        &mut self,
        shutdown: &ShutdownSignal,
        interval: Duration,
        mut sample: impl FnMut() -> Result<R, Failure>,
    ) -> Result<(), Failure> {
        loop {
            let report = sample()?;
            let [header, body] = report::lines(&report);
            let next = Instant::now() + interval;
            loop {
                self.draw(&header, &body)?;
                match self.wait(next, shutdown)? {
                    Request::Sample => break,
                    Request::Redraw => {}
                    Request::Quit => return Ok(()),
                }
            }
        }
    }

    /// Draws over the old lines, to avoid flicker.
    fn draw(&mut self, header: &[String], body: &[String]) -> io::Result<()> {
        let (columns, rows) = terminal::size()?;
        let body_rows = usize::from(rows).saturating_sub(header.len()).max(1);
        self.first = self.first.min(body.len().saturating_sub(body_rows));
        let longest = body.iter().map(|line| line.chars().count()).max().unwrap_or(0);
        self.left = self.left.min(longest.saturating_sub(columns.into()));
        let header = header.iter().map(|line| (line, 0));
        let lines = header.chain(body.iter().skip(self.first).map(|line| (line, self.left)));
        let mut frame = Vec::new();
        queue!(frame, terminal::BeginSynchronizedUpdate)?;
        let mut used = 0;
        for (row, (line, left)) in (0..rows).zip(lines) {
            queue!(frame, MoveTo(0, row))?;
            // Characters may be wider than a column. The terminal does not wrap such lines.
            let shown = line.chars().skip(left).take(columns.into());
            frame.extend(shown.collect::<String>().as_bytes());
            queue!(frame, Clear(ClearType::UntilNewLine))?;
            used = row + 1;
        }
        if used < rows {
            queue!(frame, MoveTo(0, used), Clear(ClearType::FromCursorDown))?;
        }
        queue!(frame, terminal::EndSynchronizedUpdate)?;
        self.out.write_all(&frame)?;
        self.out.flush()
    }

    /// Waits for a key, a signal, or the time for the next report.
    fn wait(&mut self, next: Instant, shutdown: &ShutdownSignal) -> Result<Request, Failure> {
        // A signal does not end the wait for a key.
        const LONGEST: Duration = Duration::from_millis(50);
        loop {
            if shutdown.is_signalled() || self.is_hung_up() {
                return Ok(Request::Quit);
            }
            let remaining = next.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return Ok(Request::Sample);
            }
            let failed = |error| Failure::run("cannot read from the terminal", error);
            if !event::poll(remaining.min(LONGEST)).map_err(failed)? {
                continue;
            }
            match event::read().map_err(failed)? {
                Event::Key(key) if key.kind != KeyEventKind::Release => {
                    if let Some(request) = self.press(key) {
                        return Ok(request);
                    }
                }
                Event::Resize(..) => return Ok(Request::Redraw),
                _ => {}
            }
        }
    }

    /// Returns whether the terminal is gone. The program may ignore the signal of that, SIGHUP.
    #[cfg(unix)]
    fn is_hung_up(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        // No event is requested: the operating system always reports a hangup.
        let mut terminal = [PollFd::new(&self.out, PollFlags::empty())];
        poll(&mut terminal, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok()
            && terminal[0].revents().contains(PollFlags::HUP)
    }

    #[cfg(not(unix))]
    fn is_hung_up(&self) -> bool {
        false
    }

    fn press(&mut self, key: KeyEvent) -> Option<Request> {
        const COLUMNS: usize = 8;
        let page = usize::from(terminal::size().map_or(24, |(_, rows)| rows / 2));
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                return Some(Request::Quit);
            }
            KeyCode::Char('q') | KeyCode::Esc => return Some(Request::Quit),
            KeyCode::Down | KeyCode::Char('j') => self.first = self.first.saturating_add(1),
            KeyCode::Up | KeyCode::Char('k') => self.first = self.first.saturating_sub(1),
            KeyCode::Right | KeyCode::Char('l') => self.left = self.left.saturating_add(COLUMNS),
            KeyCode::Left | KeyCode::Char('h') => self.left = self.left.saturating_sub(COLUMNS),
            KeyCode::PageDown | KeyCode::Char(' ') => self.first = self.first.saturating_add(page),
            KeyCode::PageUp => self.first = self.first.saturating_sub(page),
            KeyCode::Home => self.first = 0,
            KeyCode::End => self.first = usize::MAX,
            _ => return None,
        }
        Some(Request::Redraw)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Errors mean that the terminal is gone.
        let _ = queue!(self.out, Show, terminal::EnableLineWrap, terminal::LeaveAlternateScreen);
        let _ = self.out.flush();
        let _ = terminal::disable_raw_mode();
    }
}
