use std::net::IpAddr;
use std::path::PathBuf;

use bough_server::config::{Address, ConfigError};
use serde_json::{Value, json};

use crate::app::App;
use crate::backend::Remote;
use crate::command_error::{CommandError, CommandResult, ErrorKind};
use crate::limits::HEALTH_WAIT;

/// Ask a server whether it is ready
///
/// Asks the server that --server names, or the one that `bough serve` starts with the same configuration and environment.
/// No token is needed. The exit code is 0 when the server is ready and 1 when it is not, as container checks expect.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough health
  bough health --server https://bough.example
  bough health --config bough.yaml --json")]
pub(crate) struct Args {
    /// The server's configuration file [default: config.yaml in the data directory]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    // Docker gives a check two outcomes, 0 and 1, and keeps 2 for itself.
    check(app, args).await.map_err(|error| CommandError { kind: ErrorKind::Failed, ..error })
}

async fn check(app: &App, args: Args) -> CommandResult<()> {
    let server = server(app, args)?;
    let asked = tokio::time::timeout(HEALTH_WAIT, server.page("/readyz"));
    let Ok(answer) = asked.await else {
        let seconds = HEALTH_WAIT.as_secs();
        let text = format!("no answer from {} for {seconds} seconds", server.address());
        return Err(CommandError::failed(text).hint("see the server's log"));
    };
    let (status, page) = answer.map_err(|error| not_running(error.into()))?;
    if let Some(reason) = trouble(status, &page) {
        let text = format!("{} is not ready: {reason}", server.address());
        return Err(CommandError::failed(text).hint("see the server's log"));
    }
    let text = format!("{} is ready", server.address());
    let answer = json!({ "server": server.address(), "ready": page });
    app.output.answer(&answer, || app.output.line(text))
}

fn server(app: &App, args: Args) -> CommandResult<Remote> {
    if let Some(address) = &app.globals.server {
        return Remote::new(address, None);
    }
    let loaded = app.globals.load_config(args.config.as_deref()).map_err(unreadable)?;
    let address = Address::parse("listen", &loaded.config.listen).map_err(unreadable)?;
    if address.port == 0 {
        let text = "the configuration leaves the port of the server to the system";
        return Err(CommandError::failed(text).hint("name the server with --server"));
    }
    Remote::new(&format!("http://{}:{}", reachable(&address.host), address.port), None)
}

fn unreadable(error: ConfigError) -> CommandError {
    CommandError::failed(error).hint("`bough config check` checks a configuration file")
}

fn not_running(error: CommandError) -> CommandError {
    let text = error.to_string();
    CommandError::failed(text)
        .hint("check that `bough serve` runs, or name its address with --server")
}

/// Where a server that listens on an address is reached on its own machine.
fn reachable(host: &str) -> String {
    match host.trim_matches(['[', ']']).parse() {
        Ok(IpAddr::V4(ip)) if ip.is_unspecified() => "127.0.0.1".to_owned(),
        Ok(IpAddr::V6(ip)) if ip.is_unspecified() => "[::1]".to_owned(),
        Ok(IpAddr::V6(ip)) => format!("[{ip}]"),
        _ => host.to_owned(),
    }
}

/// Why a server is not ready, from the answer of `/readyz`.
fn trouble(status: u16, page: &Value) -> Option<String> {
    let says = |field: &str, value: bool| page.get(field) == Some(&Value::Bool(value));
    if page.get("status").and_then(Value::as_str).is_none() {
        return Some(format!("/readyz answers with status {status} and is not a page of Bough"));
    }
    if (200..300).contains(&status) {
        return None;
    }
    Some(if says("draining", true) {
        "it is shutting down".to_owned()
    } else if says("store_reachable", false) {
        "its store does not answer".to_owned()
    } else {
        format!("/readyz answers with status {status}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_for_everybody_is_asked_on_this_machine() {
        for (listen, asked) in [
            ("0.0.0.0", "127.0.0.1"),
            ("::", "[::1]"),
            ("::1", "[::1]"),
            ("192.0.2.7", "192.0.2.7"),
            ("bough.example", "bough.example"),
        ] {
            assert_eq!(reachable(listen), asked);
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let ready = json!({"status": "ready", "draining": false, "store_reachable": true});
        assert_eq!(trouble(200, &ready), None);
        let draining = json!({"status": "not ready", "draining": true, "store_reachable": true});
        assert_eq!(trouble(503, &draining).unwrap(), "it is shutting down");
        let cut_off = json!({"status": "not ready", "draining": false, "store_reachable": false});
        assert_eq!(trouble(503, &cut_off).unwrap(), "its store does not answer");
        assert!(trouble(200, &Value::Null).unwrap().contains("not a page of Bough"));
        assert!(trouble(404, &json!({"detail": "x"})).unwrap().contains("404"));
    }
}
