//! What can go wrong around a test, told so that the reader need not look further.
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// A failure of the harness or of what it runs.
#[derive(thiserror::Error)]
pub enum Error {
    /// A file, a pipe or a process could not be handled.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A process ended that should be running.
    #[error("{name} ended ({status}); the end of its log:\n{tail}")]
    Ended {
        /// Which process.
        name: String,
        /// Its exit status.
        status: String,
        /// The last lines of its log.
        tail: String,
    },
    /// A command came back with a bad exit status.
    #[error("{command} failed ({status}):\n{output}")]
    Command {
        /// The command line.
        command: String,
        /// Its exit status.
        status: String,
        /// What it wrote.
        output: String,
    },
    /// Something did not come true in time.
    #[error("waited {patience:?} for: {what}\nlast seen:\n{seen}")]
    Timeout {
        /// What was waited for.
        what: String,
        /// For how long.
        patience: Duration,
        /// What was there instead.
        seen: String,
    },
    /// The API server refused or could not be reached.
    #[error("API server: {0}")]
    Kube(Box<kube::Error>),
    /// The emulator or a health endpoint refused or could not be reached.
    #[error("HTTP: {0}")]
    Http(#[from] reqwest::Error),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

/// A test that hands back an error shows its `Debug`: it must read as well, with its log lines as lines.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        Error::Kube(Box::new(error))
    }
}

impl Error {
    /// Anything that can be said in a sentence.
    pub fn other(message: impl std::fmt::Display) -> Self {
        Error::Other(message.to_string())
    }
    pub(crate) fn io<'a, P: AsRef<Path> + ?Sized>(
        what: &'a str,
        path: &'a P,
    ) -> impl FnOnce(std::io::Error) -> Error + 'a {
        move |source| Error::Io { what: format!("{what} {}", path.as_ref().display()), source }
    }
}

/// What the harness hands back.
pub type Result<T> = std::result::Result<T, Error>;
