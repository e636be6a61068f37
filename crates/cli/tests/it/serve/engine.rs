//! `bough serve --engine`: a worker that others reach through an engine.

use bough_server::BareEngine;

use super::client::append_surely;
use super::process::{Bough, bridge_config, until};

/// The engine is a bus without sessions; a bridge through it reaches the functions of the worker.
#[test]
fn functions_are_reached_through_the_engine_also_after_it_was_away() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let engine = runtime.block_on(BareEngine::start(0)).unwrap();
    let (url, port) = (engine.url(), engine.port());
    for flag in ["--engine", "--url"] {
        let worker = Bough::start_with("bus: 'off'", &[flag, &url]);
        let through = format!("127.0.0.1:{port}").parse().unwrap();
        let bridge = Bough::start_with(&bridge_config(through), &[]);
        let session = worker.new_session();
        append_surely(bridge.http, &session, flag);
        assert_eq!(worker.texts(&session), [flag], "written there, read here");
    }
    let worker = Bough::start_with("bus: 'off'", &["--engine", &url]);
    let bridge = Bough::bridge_to(format!("127.0.0.1:{port}").parse().unwrap());
    let session = worker.new_session();
    drop(engine);
    assert_eq!(worker.texts(&session).len(), 0, "HTTP is served without the engine");
    let mut engine = None;
    until("the engine's port", || {
        engine = runtime.block_on(BareEngine::start(port)).ok();
        engine.is_some()
    });
    append_surely(bridge.http, &session, "again");
    assert_eq!(worker.texts(&session), ["again"]);
}

/// Settings may be stored in the engine, so without it the worker does not know its settings.
#[test]
fn an_engine_that_does_not_answer_is_said_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = super::process::command(folder.path(), "127.0.0.1:0", "off");
    let ended = command.args(["--engine", "ws://127.0.0.1:1"]).status().unwrap();
    assert!(!ended.success());
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    assert!(log.contains("the engine does not answer"), "{log}");
}
