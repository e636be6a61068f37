//! The operations outside of the function table: about the server, for browsers, and every function by its name.

use serde_json::{Map, Value, json};

use super::health;
use super::operations::{answer, good, header_parameters, with_failures};
use super::schemas::{
    Components, complete, count, nullable, reference, text, texts, time, truth, with,
};

/// Path, method and operation of each.
pub(super) fn operations(components: &mut Components) -> Vec<(&'static str, &'static str, Value)> {
    components.0.insert("ClientRange".to_owned(), client_range());
    let health = components
        .name_as("Health", complete(json!({ "status": { "type": "string", "const": "ok" } })));
    let readiness = components.name_as("Readiness", readiness());
    let version = components.name_as("Version", version());
    let login = components.name_as("Login", login());
    let ticket = components.name_as("Ticket", ticket());
    let log_in = "Exchange a bearer token for a cookie";
    let new_ticket = "Get a ticket that opens one event stream";
    vec![
        ("/healthz", "get", page("getHealth", "Whether the process answers", health)),
        ("/readyz", "get", ready(readiness)),
        (
            "/v1/version",
            "get",
            page("getVersion", "What runs here, and which clients it serves", version),
        ),
        ("/v1/health", "get", health::operation(components)),
        ("/v1/verify", "post", health::verify(components)),
        ("/metrics", "get", metrics()),
        ("/v1/call/{function_id}", "post", call_by_name()),
        (
            "/v1/login",
            "post",
            described("login", log_in, "browsers", answer("200", "Done.", login)),
        ),
        ("/v1/logout", "post", logout()),
        (
            "/v1/tickets",
            "post",
            described("createTicket", new_ticket, "browsers", answer("201", "Done.", ticket)),
        ),
    ]
}

fn version() -> Value {
    complete(json!({
        "name": text("The program."),
        "version": text("Its version."),
        "api": text("The version of the API, as in its paths."),
        "protocols": texts("What it speaks."),
        "clients": reference("ClientRange"),
    }))
}

fn client_range() -> Value {
    complete(json!({
        "min": text("The oldest version of the client libraries that is served."),
        "max": text("The newest version that is known to work."),
    }))
}

fn login() -> Value {
    complete(json!({
        "token_id": nullable(text("The token; `null` where none is needed and no cookie is set.")),
        "rights": texts("What the caller may do."),
        "expires_at": nullable(time("When the cookie ends")),
    }))
}

fn ticket() -> Value {
    complete(json!({
        "ticket": text("Send it as `ticket=` in the query of an event stream. It opens one stream."),
        "expires_at": time("When it ends"),
    }))
}

fn readiness() -> Value {
    complete(json!({
        "status": { "type": "string", "enum": ["ready", "not ready"] },
        "store": text("The adapter."),
        "store_reachable": truth("Whether the store answers."),
        "draining": truth("Whether the server is about to end."),
        "config": text("How the last reload of the configuration ended."),
        "rejected_reloads": count("Reloads that were refused since the start."),
        "reopened_sessions": count("Sessions that were opened again after a failure."),
    }))
}

fn described(id: &str, summary: &str, tag: &str, responses: Map<String, Value>) -> Value {
    json!({
        "operationId": id, "summary": summary, "description": format!("{summary}."), "tags": [tag],
        "responses": with_failures(responses),
    })
}

/// A page that needs no token.
fn page(id: &str, summary: &str, schema: Value) -> Value {
    let operation = described(id, summary, "server", answer("200", "Done.", schema));
    with(operation, "security", json!([]))
}

fn ready(schema: Value) -> Value {
    let summary = "Whether the process can do its work";
    let mut operation = page("getReadiness", summary, schema.clone());
    if let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) {
        responses.extend(answer("503", "Not ready.", schema));
    }
    operation
}

fn metrics() -> Value {
    let content = json!({
        "text/plain": { "schema": { "type": "string" }, "example": "bough_http_connections 1\n" },
    });
    let answer = json!({ "description": "Prometheus' text format.", "content": content });
    let about = "Counts for Prometheus";
    let operation = described("getMetrics", about, "server", good("200", answer));
    with(operation, "x-right", json!("metrics"))
}

fn logout() -> Value {
    let ended = good("204", json!({ "description": "The login has ended." }));
    described("logout", "End a login", "browsers", ended)
}

fn call_by_name() -> Value {
    let any = json!({ "application/json": { "schema": {}, "example": { "sessions": [] } } });
    let answer = json!({ "description": "What the function answers.", "content": any });
    let summary = "Call any function by its name";
    let operation = described("callFunction", summary, "call", good("200", answer));
    let description = "Call any function by its name, with all of its fields in the body; the rules are those of its own \
                       path. A path cannot name an id that is `.` or `..`, because clients and proxies take it for a \
                       step: this is how a session, an entry or a document with such an id is read and written, \
                       for example `POST /v1/call/session::describe` with `{\"session_id\": \"..\"}`. `GET \
                       /v1/events?session_id=..` has its events. An answer that would be 404 at the path is `null` here.";
    let mut parameters = vec![json!({
        "name": "function_id", "in": "path", "required": true, "schema": { "type": "string", "minLength": 1 },
        "description": "The function, such as `session::list`.",
    })];
    // What each header means to a function is described at the function's own path.
    parameters.extend(
        bough_service::function("session::append").map(header_parameters).into_iter().flatten(),
    );
    let content = json!({
        "application/json": { "schema": { "type": "object" }, "example": { "limit": 10 } },
    });
    let operation = with(operation, "description", json!(description));
    let operation = with(operation, "parameters", json!(parameters));
    with(operation, "requestBody", json!({ "required": false, "content": content }))
}
