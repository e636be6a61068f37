//! `bough health`: two exit codes, and a server that is found as `bough serve` finds its settings.

use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Output};

use serde_json::{Value, json};

use super::process::{Bough, bridge_config, until};

/// `bough health` in a folder of its own, whose configuration names this address.
fn health_of_config(listen: &str, environment: &[(&str, &str)]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("config.yaml"), format!("listen: '{listen}'")).unwrap();
    let mut command = command(&["--data-dir", &folder.path().display().to_string()]);
    command.envs(environment.iter().copied()).output().unwrap()
}

fn command(more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bough"));
    command.env_clear().arg("health").args(more);
    command
}

fn health(server: SocketAddr, more: &[&str]) -> Output {
    command(&["--server", &format!("http://{server}")]).args(more).output().unwrap()
}

/// An address where nobody listens.
fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[track_caller]
fn is_ready(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[track_caller]
fn is_not_ready(output: &Output, because: &str) {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains(because), "{text}");
}

#[test]
fn a_server_that_is_ready_says_so_to_people_and_programs() {
    let server = Bough::start("");
    let told = health(server.http, &[]);
    is_ready(&told);
    let line = String::from_utf8_lossy(&told.stdout);
    assert_eq!(line.trim(), format!("http://{} is ready", server.http));
    let json: Value = serde_json::from_slice(&health(server.http, &["--json"]).stdout).unwrap();
    assert_eq!(json["server"], json!(format!("http://{}", server.http)));
    assert_eq!(json["ready"]["status"], "ready");
}

#[test]
fn the_address_comes_from_the_configuration_and_from_the_environment() {
    let server = Bough::start("");
    let (there, port) = (server.http.to_string(), server.http.port());
    is_ready(&health_of_config(&there, &[]));
    is_ready(&health_of_config(&format!("0.0.0.0:{port}"), &[]));
    let elsewhere = nobody().to_string();
    is_ready(&health_of_config(&elsewhere, &[("BOUGH_LISTEN", &there)]));
    is_not_ready(&health_of_config("127.0.0.1:0", &[]), "--server");
}

#[test]
fn a_proxy_of_the_environment_is_not_asked_for_this_machine() {
    let server = Bough::start("");
    let proxy = format!("http://{}", nobody());
    is_ready(&health_of_config(&server.http.to_string(), &[("HTTP_PROXY", &proxy)]));
}

#[test]
fn no_token_is_needed_and_a_wrong_one_does_not_matter() {
    let server = Bough::start("tokens: {required: true}");
    is_ready(&health(server.http, &[]));
    is_ready(&health(server.http, &["--token", "wrong"]));
}

#[test]
fn every_failure_has_one_exit_code() {
    is_not_ready(&health(nobody(), &[]), "check that `bough serve` runs");
    let json = health(nobody(), &["--json"]);
    is_not_ready(&json, "\"error\"");
    is_not_ready(&command(&["--server", "nonsense"]).output().unwrap(), "not the address");
    let missing = ["--config", "/nonexistent/bough.yaml"];
    is_not_ready(&command(&missing).output().unwrap(), "/nonexistent/bough.yaml");
}

#[test]
fn a_server_whose_store_does_not_answer_is_not_ready() {
    let server = Bough::start(&bridge_config(nobody()));
    until("a store that is known to be away", || {
        let output = health(server.http, &[]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        output.status.code() == Some(1) && text.contains("its store does not answer")
    });
}
