//! The terminal while it is ours. It is given back as it was, however that ends.

use std::io::{Read, Write, stdin, stdout};

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::style::Print;
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, DisableLineWrap, EnableLineWrap, EndSynchronizedUpdate, EnterAlternateScreen,
    LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use crossterm::{execute, queue};
use tokio::sync::mpsc;

/// Where nobody knows the size.
const USUAL: (u16, u16) = (80, 24);

/// A screen of its own, without a cursor, in which keys come one by one and nothing is wrapped.
pub(super) struct Terminal;

impl Terminal {
    pub fn take() -> std::io::Result<Terminal> {
        enable_raw_mode()?;
        // from here on it is given back, also if the next line fails
        let terminal = Terminal;
        execute!(stdout(), EnterAlternateScreen, Hide, DisableLineWrap)?;
        Ok(terminal)
    }

    /// Draws all lines, each no longer than the width, and no more than the height.
    pub fn draw(&mut self, lines: impl FnOnce((usize, usize)) -> Vec<String>) -> std::io::Result<()> {
        let (columns, rows) = size().ok().filter(|(columns, rows)| *columns > 0 && *rows > 0).unwrap_or(USUAL);
        let mut frame = Vec::new();
        queue!(frame, BeginSynchronizedUpdate)?;
        let mut lines = lines((columns.into(), rows.into())).into_iter();
        for row in 0..rows {
            // cleared first: behind a line that fills the width, the last letter would be cleared with the rest
            queue!(frame, MoveTo(0, row), Clear(ClearType::UntilNewLine), Print(lines.next().unwrap_or_default()))?;
        }
        queue!(frame, EndSynchronizedUpdate)?;
        let mut out = stdout().lock();
        out.write_all(&frame)?;
        out.flush()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        _ = execute!(stdout(), EnableLineWrap, Show, LeaveAlternateScreen);
        _ = disable_raw_mode();
    }
}

/// Tells when somebody wants to leave: q, Ctrl-C or Ctrl-D, which are keys like any other here. In a thread of its own, because a read of a
/// terminal cannot be ended; it ends with the process.
pub(super) fn quits() -> mpsc::Receiver<()> {
    let (send, receive) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut keys = [0_u8; 64];
        while let Ok(read @ 1..) = stdin().read(&mut keys) {
            if keys[..read].iter().any(|key| matches!(key, b'q' | b'Q' | 0x03 | 0x04)) && send.blocking_send(()).is_err() {
                return;
            }
        }
    });
    receive
}
