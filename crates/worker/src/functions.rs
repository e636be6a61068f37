//! The functions of the table, registered with the engine.

use bough_service::{Function, Scope, Service, ServiceError, functions};
use iii_sdk::{Error, IIIClient, RegisterFunction};
use serde_json::{Value, json};
use tokio::runtime::Handle;

/// Registers every function, and a function that carries the name of this instance.
pub(crate) fn register(client: &IIIClient, service: &Service, runtime: &Handle, instance: &str) {
    for function in functions() {
        client.register_function(function.id, registration(function, service, runtime));
    }
    let own =
        RegisterFunction::new_async(|_: Value| async { Ok::<_, Error>(json!({ "ok": true })) });
    let own =
        own.description("Internal: an instance that stores through another asks for itself there.");
    client.register_function(format!("session::instance::{instance}"), own);
}

fn registration(
    function: &'static Function,
    service: &Service,
    runtime: &Handle,
) -> RegisterFunction {
    let (service, runtime) = (service.clone(), runtime.clone());
    RegisterFunction::new_async(move |request: Value| {
        let (service, runtime) = (service.clone(), runtime.clone());
        async move {
            // Writes run to completion on our own runtime, even if the engine's connection ends.
            let call = async move { service.call(&Scope::owner(), function.id, request).await };
            let answer = runtime.spawn(call).await;
            let answer = answer.map_err(|_| Error::Handler("the function failed".to_owned()))?;
            answer.map_err(|error| remote(&error))
        }
    })
    .description(function.description)
    .request_format(function.request_schema())
    .response_format(function.response_schema())
}

/// The error, without a stack trace.
fn remote(error: &ServiceError) -> Error {
    let message = error.bus_message();
    Error::Remote { code: "invocation_failed".to_owned(), message, stacktrace: None }
}
