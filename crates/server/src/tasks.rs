//! The background tasks of the server.

use bough_store::StoreExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bough_service::{Scope, Service};

use crate::app::App;
use crate::guard::TOKENS_FILE;
use crate::inspection::StoreDirectory;
use crate::limits::{
    KEY_SWEEP, MEASURE_PAUSE_MAX, MEASURE_PAUSE_MIN, MEASURE_PAUSE_SHARE, SETTINGS_POLL,
    STREAM_SWEEP_MAX, STREAM_SWEEP_MIN, TRASH_SWEEP,
};
use crate::settings::{Applier, FileMark, mark};

/// Checks the settings files until the server ends, and applies changes. Stores the local key again if another server
/// on the directory removed it.
pub(crate) async fn watch_settings(app: App, applier: Arc<Applier>, config_file: PathBuf) {
    let sources = applier.sources();
    let tokens_file = sources.data_dir.join(TOKENS_FILE);
    // The marks from before the files were read, so that a change since the start is noticed.
    let mut known = (sources.config_mark, sources.tokens_mark);
    let (key, disk) = (sources.local_key.clone(), sources.disk.clone());
    let read = move || {
        // An error is retried at the next check.
        drop(key.keep(&*disk));
        (mark(&config_file), mark(&tokens_file))
    };
    let read = Arc::new(read);
    let marks = |read: Arc<dyn Fn() -> (FileMark, FileMark) + Send + Sync>| async move {
        tokio::task::spawn_blocking(move || read()).await.unwrap_or_default()
    };
    while pause(&app, SETTINGS_POLL).await {
        let now = marks(read.clone()).await;
        if now.1 != known.1 {
            applier.reload_tokens();
        }
        if now.0 != known.0 {
            reload(&app.service).await;
        }
        known = now;
    }
}

async fn reload(service: &Service) {
    let event = bough_service::api::OnConfigChangeEvent::default();
    if let Err(error) = service.on_config_change(&Scope::owner(), event).await {
        tracing::error!(code = error.code(), "the configuration could not be read again");
    }
}

/// Calls the store before the server accepts requests, so that `/readyz` reports it as ready only after a successful
/// call. Does not wait for a slow store.
pub(crate) async fn check_store_first(app: &App) {
    /// How long to wait.
    const MOST: Duration = Duration::from_secs(1);
    if tokio::time::timeout(MOST, check_store(app)).await.is_err() {
        app.health.set_trouble(Some("it has not answered yet".to_owned()));
    }
}

/// Calls the store now and then, so that `/readyz` notices a failure before callers do.
pub(crate) async fn watch_store(app: App) {
    /// How often.
    const EVERY: Duration = Duration::from_secs(2);
    loop {
        check_store(&app).await;
        if !pause(&app, EVERY).await {
            return;
        }
    }
}

async fn check_store(app: &App) {
    let answer = app.service.store().change_cursor().await;
    let trouble = answer.err().map(|error| error.to_string());
    if trouble.is_some() != app.health.trouble().is_some() {
        match &trouble {
            Some(reason) => tracing::error!(reason, "the store does not answer"),
            None => tracing::info!("the store answers"),
        }
    }
    app.health.set_trouble(trouble);
}

/// Removes deleted sessions for good when their retention has ended.
pub(crate) async fn sweep_trash(app: App) {
    loop {
        match app.service.purge_expired().await {
            Ok(0) => {}
            Ok(count) => {
                tracing::info!(count, "deleted sessions were removed; their retention has ended")
            }
            Err(error) => tracing::warn!(code = error.code(), "the trash could not be swept"),
        }
        if !pause(&app, TRASH_SWEEP).await {
            return;
        }
    }
}

/// Forgets what idempotency keys were used for when their time has ended.
pub(crate) async fn sweep_keys(app: App) {
    while pause(&app, KEY_SWEEP).await {
        if let Err(error) = app.service.forget_ended_keys().await {
            tracing::warn!(code = error.code(), "ended idempotency keys could not be removed");
        }
    }
}

/// Measures the size of the store now and then, in a small part of the time, and sooner when somebody looks at it.
pub(crate) async fn measure_store(app: App) {
    loop {
        let begun = app.clock.monotonic();
        let checked = app.clone();
        let read = move || checked.inspection.measure(&checked.shutdown);
        if let Ok(Err(error)) = tokio::task::spawn_blocking(read).await {
            tracing::warn!(%error, "the store could not be measured");
        }
        let took = app.clock.monotonic().saturating_sub(begun);
        let rest = took.saturating_mul(MEASURE_PAUSE_SHARE);
        let goes_on = tokio::select! {
            goes_on = pause(&app, rest.clamp(MEASURE_PAUSE_MIN, MEASURE_PAUSE_MAX)) => goes_on,
            () = app.inspection.measurement_wanted() => true,
        };
        if !goes_on {
            return;
        }
    }
}

/// Checks every byte of the store, and stores the result.
pub(crate) async fn verify_store(app: App, directory: StoreDirectory, started_at: i64) {
    let checked = (directory.clone(), app.clone());
    let read = move || checked.0.verify(started_at, &checked.1.shutdown);
    let found = tokio::task::spawn_blocking(read).await.ok().flatten();
    if let Some(found) = found {
        let (sessions, damaged) = (found.sessions, found.damaged);
        match found.status() {
            "well" => tracing::info!(sessions, "the store was verified"),
            status => tracing::error!(sessions, damaged, status, "verifying the store found"),
        }
        if let Err(error) = directory.keep(&found).await {
            tracing::error!(%error, "the result of the verification could not be kept");
        }
    }
    app.inspection.end_verification();
}

/// Closes, as aborted, streaming messages that do not grow any more.
pub(crate) async fn close_abandoned_streams(app: App) {
    loop {
        match app.service.abort_abandoned_streams().await {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "unfinished messages were closed as aborted"),
            Err(error) => tracing::warn!(code = error.code(), "open streams could not be read"),
        }
        // Often enough that a stream is closed soon after its time, and not more often.
        let rest = app.service.settings().stream_abandoned_after;
        let rest = rest.map_or(STREAM_SWEEP_MAX, |rest| rest / 4);
        if !pause(&app, rest.clamp(STREAM_SWEEP_MIN, STREAM_SWEEP_MAX)).await {
            return;
        }
    }
}

/// Updates the search index with what is written.
pub(crate) async fn keep_index(app: App) {
    tokio::select! {
        () = app.service.keep_indexing() => {}
        () = app.shutdown.begun() => {}
    }
}

/// Waits; `false` when the server ends meanwhile.
async fn pause(app: &App, time: Duration) -> bool {
    tokio::select! {
        () = tokio::time::sleep(time) => true,
        () = app.shutdown.begun() => false,
    }
}
