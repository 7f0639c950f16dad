//! The log: what happens, one line each, on standard error.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::FmtSubscriber;

/// How a line of the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// How grave a line must be to be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogLevel {
    /// What failed for good.
    Error,
    /// What should not be, and is tried again or left out.
    Warn,
    /// What happens: starts, verdicts, watches that end.
    #[default]
    Info,
    /// Each write.
    Debug,
    /// All.
    Trace,
}

/// Starts the log. A second start changes nothing.
pub fn start(format: LogFormat, level: LogLevel) {
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let log = FmtSubscriber::builder().with_max_level(level).with_writer(std::io::stderr);
    // It fails only where a log was started before.
    let _ = match format {
        LogFormat::Text => tracing::subscriber::set_global_default(log.finish()),
        LogFormat::Json => {
            let log = log.json().flatten_event(true).with_current_span(false).with_span_list(false);
            tracing::subscriber::set_global_default(log.finish())
        }
    };
}
