//! A server with nothing around it: `serve DATA_DIR LISTEN BUS`.

use std::path::PathBuf;

use bough_server::{ServeError, ServeOptions, run, shutdown_on_signals};

#[tokio::main]
async fn main() -> Result<(), ServeError> {
    let mut words = std::env::args().skip(1);
    let options = ServeOptions {
        data_dir: words.next().map(PathBuf::from),
        listen: words.next(),
        bus: words.next(),
        ..ServeOptions::default()
    };
    run(options, shutdown_on_signals()).await
}
