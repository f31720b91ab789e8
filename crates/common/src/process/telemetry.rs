//! Logs: one line per event on stderr, as text for people or JSON for machines.
use clap::ValueEnum;
use std::io::IsTerminal as _;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    #[default]
    Json,
}

/// Logs cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter makes no sense.
    #[error("log filter {0:?}: {1}")]
    Filter(String, String),
    /// Somebody was first.
    #[error("logs are set up already")]
    Twice,
}

/// Sets logs up for the whole process.
pub fn init(format: LogFormat, filter: &str) -> Result<(), LogError> {
    let filter = EnvFilter::try_new(filter).map_err(|e| LogError::Filter(filter.into(), e.to_string()))?;
    let builder = fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let done = match format {
        LogFormat::Text => builder.with_target(false).with_ansi(std::io::stderr().is_terminal()).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).with_span_list(false).try_init(),
    };
    done.map_err(|_| LogError::Twice)
}
