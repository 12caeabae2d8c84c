//! The one way to standard output.

use std::io::{self, BufWriter, Write};

/// Writes a text to standard output.
pub fn print(text: &str) -> anyhow::Result<()> {
    stream(|to| to.write_all(text.as_bytes()))
}

/// Writes to standard output what is made piece by piece. A reader that has seen enough is no fault; any other is said,
/// a full disk too, which shows only when the last piece is flushed.
pub fn stream(content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let done = content(&mut out).and_then(|()| out.flush());
    // What could not be written is not tried again at the end.
    let _ = out.into_parts();
    match done {
        Err(e) if !is_closed(&e) => Err(anyhow::anyhow!("cannot write to standard output: {e}")),
        _ => Ok(()),
    }
}

/// Whether the other end of a pipe was closed.
pub fn is_closed(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}
