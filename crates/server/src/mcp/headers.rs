//! The headers of a message. They must agree with its body, so that a proxy that reads only the headers is not misled.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bough_mcp::{HANDSHAKE_VERSIONS, Request, RpcError, Wire, check_stateless, named_in};
use http::HeaderMap;
use serde_json::Value;

const VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// The protocol version of a request, from its headers and its body.
pub(super) fn wire_of(headers: &HeaderMap, request: &Request) -> Result<Wire, RpcError> {
    let given = text(headers, VERSION)?;
    let named = named_in(&request.params);
    let is_of_2025 = given.is_none_or(|version| HANDSHAKE_VERSIONS.contains(&version));
    if is_of_2025 && named.is_none() {
        return Ok(Wire::Handshake { subscribes: false });
    }
    let Some(given) = given else {
        return Err(mismatch(VERSION, "is missing"));
    };
    must_be(headers, METHOD, &request.method)?;
    if let Some(name) = name_of(request) {
        must_be(headers, NAME, name)?;
    }
    if named.is_some_and(|named| named != given) {
        return Err(mismatch(VERSION, "is not the version in `params._meta`"));
    }
    check_stateless(request)?;
    Ok(Wire::Stateless)
}

/// The subject of a request, for requests that name it in a header too.
fn name_of(request: &Request) -> Option<&str> {
    let name = match request.method.as_str() {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return None,
    };
    request.params.get(name).and_then(Value::as_str)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, RpcError> {
    let mut all = headers.get_all(name).iter();
    let (first, second) = (all.next(), all.next());
    if second.is_some() {
        return Err(mismatch(name, "is there more than once"));
    }
    let Some(value) = first else { return Ok(None) };
    let text = value.to_str().map_err(|_| mismatch(name, "is not plain text"))?;
    Ok(Some(text.trim_matches([' ', '\t'])))
}

fn must_be(headers: &HeaderMap, name: &str, expected: &str) -> Result<(), RpcError> {
    let Some(given) = text(headers, name)? else {
        return Err(mismatch(name, "is missing"));
    };
    if decode(given).as_deref() == Some(expected) {
        return Ok(());
    }
    Err(mismatch(name, "is not what the body says"))
}

/// The text of a header that may be encoded, because not every text can be in a header; `None` if the encoding is
/// invalid.
fn decode(given: &str) -> Option<String> {
    let coded = given.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    let Some(coded) = coded else { return Some(given.to_owned()) };
    String::from_utf8(STANDARD.decode(coded).ok()?).ok()
}

fn mismatch(name: &str, what: &str) -> RpcError {
    RpcError::new(RpcError::HEADER_MISMATCH, format!("the header {name} {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bough_mcp::STATELESS_VERSION;
    use http::{HeaderName, HeaderValue};
    use serde_json::{Map, json};

    fn wire(
        pairs: &[(&'static str, &'static str)],
        method: &str,
        params: Value,
    ) -> Result<Wire, i64> {
        let headers = pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        let Value::Object(params) = params else { panic!("an object") };
        let request = Request { id: json!(1), method: method.to_owned(), params };
        wire_of(&headers, &request).map_err(|error| error.code)
    }

    fn meta(version: &str) -> Value {
        let mut meta = Map::new();
        meta.insert("io.modelcontextprotocol/protocolVersion".to_owned(), version.into());
        meta.insert("io.modelcontextprotocol/clientCapabilities".to_owned(), json!({}));
        json!({ "_meta": meta })
    }

    #[test]
    fn a_client_that_shakes_hands_needs_no_header() {
        let shaken = Ok(Wire::Handshake { subscribes: false });
        assert_eq!(wire(&[], "initialize", json!({})), shaken);
        assert_eq!(wire(&[(VERSION, "2025-11-25")], "tools/list", json!({})), shaken);
    }

    #[test]
    fn headers_of_a_stateless_request_say_what_its_body_says() {
        let version = (VERSION, STATELESS_VERSION);
        let method = (METHOD, "tools/list");
        let mismatch = Err(RpcError::HEADER_MISMATCH);
        let now = || meta(STATELESS_VERSION);
        assert_eq!(wire(&[version, method], "tools/list", now()), Ok(Wire::Stateless));
        assert_eq!(wire(&[method], "tools/list", now()), mismatch);
        assert_eq!(wire(&[version], "tools/list", now()), mismatch);
        assert_eq!(wire(&[version, (METHOD, "TOOLS/LIST")], "tools/list", now()), mismatch);
        assert_eq!(wire(&[version, method], "tools/list", meta("2027-01-01")), mismatch);
        assert_eq!(
            wire(&[version, method], "tools/list", json!({})),
            Err(RpcError::INVALID_PARAMS)
        );
        let future = [(VERSION, "2027-01-01"), method];
        assert_eq!(
            wire(&future, "tools/list", meta("2027-01-01")),
            Err(RpcError::UNSUPPORTED_VERSION)
        );
        assert_eq!(wire(&[(VERSION, "2025-11-25"), method], "tools/list", now()), mismatch);
    }

    #[test]
    fn a_name_may_be_encoded() {
        let check = |name: &'static str, expected: Result<Wire, i64>| {
            let headers = [(VERSION, STATELESS_VERSION), (METHOD, "tools/call"), (NAME, name)];
            let mut params = meta(STATELESS_VERSION);
            params["name"] = "search".into();
            assert_eq!(wire(&headers, "tools/call", params), expected, "{name}");
        };
        check("search", Ok(Wire::Stateless));
        check(" search\t", Ok(Wire::Stateless));
        check("=?base64?c2VhcmNo?=", Ok(Wire::Stateless));
        check("=?base64?c2VhcmN?=", Err(RpcError::HEADER_MISMATCH));
        check("Search", Err(RpcError::HEADER_MISMATCH));
    }
}
