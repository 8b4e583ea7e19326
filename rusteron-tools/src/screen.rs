//! Reports as a full screen, redrawn in place.

use std::io::{self, Stdout, Write};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::queue;
use crossterm::terminal::{self, Clear, ClearType};

use crate::failure::Failure;
use crate::report::Report;

/// The terminal as one screen. Dropping it gives the terminal back as it was.
pub(crate) struct Screen {
    out: Stdout,
    /// The first line of the body that is shown.
    first: usize,
}

/// A wish of the user, or of the timer.
enum Wish {
    /// A report that is new.
    Report,
    /// The same report again: it was scrolled, or the window has another size.
    Redraw,
    /// The end.
    Quit,
}

impl Screen {
    pub(crate) fn enter() -> Result<Self, Failure> {
        terminal::enable_raw_mode()
            .map_err(|error| Failure::run("cannot use the terminal for a full screen", error))?;
        // From here on, dropping the screen undoes its changes to the terminal.
        let mut screen = Self { out: io::stdout(), first: 0 };
        queue!(screen.out, terminal::EnterAlternateScreen, terminal::DisableLineWrap, Hide)?;
        Ok(screen)
    }

    /// Shows a report after each interval, until the user has seen enough.
    pub(crate) fn show<R: Report>(
        mut self,
        interrupted: &Receiver<()>,
        interval: Duration,
        mut sample: impl FnMut() -> Result<R, Failure>,
    ) -> Result<(), Failure> {
        loop {
            let report = sample()?;
            let (header, body) = (report.header(), report.body());
            let next = Instant::now() + interval;
            loop {
                self.draw(&header, &body)?;
                match self.wait(next, interrupted)? {
                    Wish::Report => break,
                    Wish::Redraw => {}
                    Wish::Quit => return Ok(()),
                }
            }
        }
    }

    /// Draws over the old lines, so that nothing flickers.
    fn draw(&mut self, header: &[String], body: &[String]) -> io::Result<()> {
        let (columns, rows) = terminal::size()?;
        let body_rows = usize::from(rows).saturating_sub(header.len()).max(1);
        self.first = self.first.min(body.len().saturating_sub(body_rows));
        let lines = header.iter().chain(body.iter().skip(self.first));
        let mut frame = Vec::new();
        queue!(frame, terminal::BeginSynchronizedUpdate)?;
        let mut used = 0;
        for (row, line) in (0..rows).zip(lines) {
            queue!(frame, MoveTo(0, row))?;
            // Enough for most; where characters are wider, the terminal does not wrap.
            frame.extend(line.chars().take(columns.into()).collect::<String>().as_bytes());
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
    fn wait(&mut self, next: Instant, interrupted: &Receiver<()>) -> Result<Wish, Failure> {
        // A signal does not end the wait for a key.
        const LONGEST: Duration = Duration::from_millis(50);
        loop {
            if !matches!(interrupted.try_recv(), Err(TryRecvError::Empty)) {
                return Ok(Wish::Quit);
            }
            let remaining = next.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return Ok(Wish::Report);
            }
            let failed = |error| Failure::run("cannot read from the terminal", error);
            if !event::poll(remaining.min(LONGEST)).map_err(failed)? {
                continue;
            }
            match event::read().map_err(failed)? {
                Event::Key(key) if key.kind != KeyEventKind::Release => {
                    if let Some(wish) = self.press(key) {
                        return Ok(wish);
                    }
                }
                Event::Resize(..) => return Ok(Wish::Redraw),
                _ => {}
            }
        }
    }

    fn press(&mut self, key: KeyEvent) -> Option<Wish> {
        let page = usize::from(terminal::size().map_or(24, |(_, rows)| rows / 2));
        self.first = match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                return Some(Wish::Quit);
            }
            KeyCode::Char('q') | KeyCode::Esc => return Some(Wish::Quit),
            KeyCode::Down | KeyCode::Char('j') => self.first.saturating_add(1),
            KeyCode::Up | KeyCode::Char('k') => self.first.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.first.saturating_add(page),
            KeyCode::PageUp => self.first.saturating_sub(page),
            KeyCode::Home => 0,
            KeyCode::End => usize::MAX,
            _ => return None,
        };
        Some(Wish::Redraw)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing back.
        let _ = queue!(self.out, Show, terminal::EnableLineWrap, terminal::LeaveAlternateScreen);
        let _ = self.out.flush();
        let _ = terminal::disable_raw_mode();
    }
}
