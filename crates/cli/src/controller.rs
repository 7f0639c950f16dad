//! `controller`: the command line as options of `phalanx-live`, which runs it.

use phalanx_live::{Access, Options, run as follow, start_logs};

use crate::args::{ControllerArgs, LogFormat, LogLevel};
use crate::cluster;
use crate::exit::{Answer, FINE, Failure, Printed};

/// Runs it until it is told to stop.
pub(crate) fn run(args: &ControllerArgs) -> Result<Answer, Failure> {
    start_logs(format(args.log_format), level(args.log_level));
    let options = Options {
        access: Access { kubeconfig: args.kubeconfig.clone(), context: args.context.clone() },
        scheduler_name: args.scheduler_name.clone(),
        shadow: args.shadow,
        feature_gates: args.feature_gates.clone().unwrap_or_default(),
        listen: args.listen,
        writes_at_once: usize::from(args.writes),
        start_within_millis: i64::from(args.start_within) * 1000,
        snapshots: args.snapshots.clone().unwrap_or_else(std::env::temp_dir),
    };
    follow(options).map_err(cluster::failure)?;
    Ok(Answer { out: Printed::Text(String::new()), messages: String::new(), code: FINE })
}

fn format(format: LogFormat) -> phalanx_live::LogFormat {
    match format {
        LogFormat::Text => phalanx_live::LogFormat::Text,
        LogFormat::Json => phalanx_live::LogFormat::Json,
    }
}

fn level(level: LogLevel) -> phalanx_live::LogLevel {
    match level {
        LogLevel::Error => phalanx_live::LogLevel::Error,
        LogLevel::Warn => phalanx_live::LogLevel::Warn,
        LogLevel::Info => phalanx_live::LogLevel::Info,
        LogLevel::Debug => phalanx_live::LogLevel::Debug,
        LogLevel::Trace => phalanx_live::LogLevel::Trace,
    }
}
