//! The methods of the protocol, in the supported versions.

use serde_json::{Map, Value, json};

use crate::host::Host;
use crate::limits::STEADY_TTL;
use crate::rpc::{Request, RpcError};

/// Versions with a handshake, the newest first.
pub const HANDSHAKE_VERSIONS: [&str; 2] = ["2025-11-25", "2025-06-18"];
/// The version with stateless requests.
pub const STATELESS_VERSION: &str = "2026-07-28";

const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";

/// How a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// It shakes hands first.
    Handshake {
        /// Whether it can subscribe to resources: the transport must be able to send notifications.
        subscribes: bool,
    },
    /// Each request is complete in itself.
    Stateless,
}

/// Every supported version, the newest first.
#[must_use]
pub fn versions() -> Vec<&'static str> {
    std::iter::once(STATELESS_VERSION).chain(HANDSHAKE_VERSIONS).collect()
}

/// The version that a request names.
#[must_use]
pub fn named_in(params: &Map<String, Value>) -> Option<&str> {
    params.get("_meta")?.get(META_VERSION)?.as_str()
}

/// Refuses a request that lacks what a stateless one must have, or is of an unsupported version.
pub fn check_stateless(request: &Request) -> Result<(), RpcError> {
    let meta = request.params.get("_meta");
    for key in [META_VERSION, META_CAPABILITIES] {
        if meta.and_then(|meta| meta.get(key)).is_none() {
            return Err(RpcError::bad_params(format!("`params._meta` needs the member {key:?}")));
        }
    }
    let requested = named_in(&request.params).unwrap_or_default();
    if requested == STATELESS_VERSION {
        return Ok(());
    }
    let text = format!("version {requested:?} of the protocol is not spoken here in this way");
    let data = json!({ "supported": versions(), "requested": requested });
    Err(RpcError::new(RpcError::UNSUPPORTED_VERSION, text).with_data(data))
}

/// Answers a request. The transport handles subscriptions: only it can send notifications.
pub async fn answer(host: &dyn Host, wire: Wire, request: &Request) -> Result<Value, RpcError> {
    let params = &request.params;
    let result = match (request.method.as_str(), wire) {
        ("initialize", Wire::Handshake { .. }) => return Ok(initialize(host, wire, params)),
        ("ping", Wire::Handshake { .. }) => return Ok(json!({})),
        ("server/discover", Wire::Stateless) => discover(host, wire),
        ("tools/list", _) => json!({ "tools": host.tools() }),
        ("tools/call", _) => call_tool(host, params).await?,
        ("resources/list", _) => host.resources(text(params, "cursor")?).await?,
        ("resources/templates/list", _) => json!({ "resourceTemplates": host.templates() }),
        ("resources/read", _) => read(host, wire, params).await?,
        (method, _) => return Err(RpcError::no_method(method)),
    };
    Ok(match wire {
        Wire::Handshake { .. } => result,
        Wire::Stateless => finish(&request.method, result),
    })
}

fn server_info() -> Value {
    json!({ "name": "bough", "title": "Bough", "version": env!("CARGO_PKG_VERSION") })
}

fn capabilities(wire: Wire) -> Value {
    let follows = !matches!(wire, Wire::Handshake { subscribes: false });
    json!({ "tools": {}, "resources": { "subscribe": follows, "listChanged": follows } })
}

/// Answers the handshake. A client that asks for an unsupported version is offered the newest, and decides.
fn initialize(host: &dyn Host, wire: Wire, params: &Map<String, Value>) -> Value {
    let asked = params.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
    let [newest, ..] = HANDSHAKE_VERSIONS;
    let version = HANDSHAKE_VERSIONS.into_iter().find(|known| *known == asked).unwrap_or(newest);
    let mut result = json!({
        "protocolVersion": version,
        "capabilities": capabilities(wire),
        "serverInfo": server_info(),
    });
    put(&mut result, "instructions", host.instructions().map(Value::from));
    result
}

fn discover(host: &dyn Host, wire: Wire) -> Value {
    let mut result = json!({ "supportedVersions": versions(), "capabilities": capabilities(wire) });
    put(&mut result, "instructions", host.instructions().map(Value::from));
    result
}

async fn call_tool(host: &dyn Host, params: &Map<String, Value>) -> Result<Value, RpcError> {
    let name = needed(params, "name")?;
    let arguments = match params.get("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(_) => return Err(RpcError::bad_params("`arguments` is not an object")),
    };
    let capabilities = params.get("_meta").and_then(|meta| meta.get(META_CAPABILITIES));
    host.call_tool(name, arguments, capabilities.unwrap_or(&Value::Null)).await
}

async fn read(host: &dyn Host, wire: Wire, params: &Map<String, Value>) -> Result<Value, RpcError> {
    let uri = needed(params, "uri")?;
    let found = host.read(uri).await?;
    let contents = found.ok_or_else(|| no_resource(wire, uri))?;
    Ok(json!({ "contents": [contents] }))
}

/// There is no resource of this address.
pub(crate) fn no_resource(wire: Wire, uri: &str) -> RpcError {
    let code = match wire {
        Wire::Handshake { .. } => RpcError::RESOURCE_NOT_FOUND,
        Wire::Stateless => RpcError::INVALID_PARAMS,
    };
    let text = format!("there is no resource {uri:?}; resources/list lists them");
    RpcError::new(code, text).with_data(json!({ "uri": uri }))
}

/// Adds what every stateless answer has.
pub(crate) fn finish(method: &str, mut result: Value) -> Value {
    put(&mut result, "resultType", Some("complete".into()));
    put(&mut result, "_meta", Some(json!({ META_SERVER: server_info() })));
    let kept = match method {
        "server/discover" | "tools/list" | "resources/templates/list" => {
            Some(u64::try_from(STEADY_TTL.as_millis()).unwrap_or_default())
        }
        "resources/list" | "resources/read" => Some(0),
        _ => None,
    };
    if let Some(ttl) = kept {
        put(&mut result, "ttlMs", Some(ttl.into()));
        // What a caller sees depends on its token.
        put(&mut result, "cacheScope", Some("private".into()));
    }
    result
}

fn put(result: &mut Value, name: &str, value: Option<Value>) {
    if let (Some(fields), Some(value)) = (result.as_object_mut(), value) {
        fields.insert(name.to_owned(), value);
    }
}

/// A parameter that is a text, if it is given.
pub(crate) fn text<'a>(
    params: &'a Map<String, Value>,
    name: &str,
) -> Result<Option<&'a str>, RpcError> {
    match params.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(RpcError::bad_params(format!("`{name}` is not a text"))),
    }
}

/// A parameter that is a text and must be given.
pub(crate) fn needed<'a>(params: &'a Map<String, Value>, name: &str) -> Result<&'a str, RpcError> {
    text(params, name)?.ok_or_else(|| RpcError::bad_params(format!("`{name}` is missing")))
}
