//! The console: a page for people, built from `console/` and part of the program.
//!
//! The address of each file holds its digest, so that browsers keep a file for good and ask only for the page. The page
//! may load nothing from elsewhere, run no script of its own text, and make no HTML out of text.

use std::sync::LazyLock;

use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bough_session::hex;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, REFERRER_POLICY, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use sha2::{Digest, Sha256};

use crate::api::Problem;
use crate::app::App;

/// What browsers enforce: everything comes from this server, and `require-trusted-types-for` with no policy to make
/// trusted text means that no text becomes HTML or script.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

/// How many digits of its digest are in a file's address.
const DIGEST_DIGITS: usize = 16;

/// A file of the page.
struct Asset {
    /// The last part of its address.
    name: String,
    kind: &'static str,
    bytes: &'static [u8],
    /// The same compressed with gzip.
    compressed: Option<&'static [u8]>,
}

/// A file of `console/dist` with its compressed form.
macro_rules! compressed_asset {
    ($stem:literal, $ending:literal, $kind:expr) => {
        Asset::new(
            ($stem, $ending),
            $kind,
            include_bytes!(concat!("../../../console/dist/", $stem, ".", $ending)),
            Some(include_bytes!(concat!("../../../console/dist/", $stem, ".", $ending, ".gz"))),
        )
    };
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

static ASSETS: LazyLock<[Asset; 8]> = LazyLock::new(|| {
    [
        compressed_asset!("app", "css", "text/css; charset=utf-8"),
        compressed_asset!("boot", "js", SCRIPT),
        compressed_asset!("app", "js", SCRIPT),
        compressed_asset!("core", "js", SCRIPT),
        compressed_asset!("session_views", "js", SCRIPT),
        compressed_asset!("server_views", "js", SCRIPT),
        compressed_asset!("colours", "js", SCRIPT),
        Asset::new(
            ("icon", "svg"),
            "image/svg+xml",
            include_bytes!("../../../console/dist/icon.svg"),
            None,
        ),
    ]
});

const PAGE: &str = include_str!("../../../console/dist/index.html");
const LICENCES: &str = include_str!("../../../console/dist/licences.txt");

static PAGE_TAG: LazyLock<String> = LazyLock::new(|| format!("\"{}\"", digest(PAGE.as_bytes())));

impl Asset {
    fn new(
        (stem, ending): (&str, &str),
        kind: &'static str,
        bytes: &'static [u8],
        compressed: Option<&'static [u8]>,
    ) -> Self {
        Self { name: format!("{stem}-{}.{ending}", digest(bytes)), kind, bytes, compressed }
    }
}

fn digest(bytes: &[u8]) -> String {
    let mut digits = hex(&Sha256::digest(bytes));
    digits.truncate(DIGEST_DIGITS);
    digits
}

pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/", get(page))
        .route("/assets/licences.txt", get(licences))
        .route("/assets/{name}", get(asset))
}

/// Whether a path is of the console: its files hold no data, so they need no token.
pub(crate) fn is_console(path: &str) -> bool {
    path == "/" || path.starts_with("/assets/")
}

async fn page(headers: HeaderMap) -> Response {
    let known = headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let is_known = known.is_some_and(|tags| tags.split(',').any(|tag| tag.trim() == *PAGE_TAG));
    let mut response = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"))], PAGE)
            .into_response()
    };
    let headers = response.headers_mut();
    let mut set = |name: HeaderName, value: &'static str| {
        headers.insert(name, HeaderValue::from_static(value));
    };
    // The page is asked for every time, so that a newer server shows a newer console.
    set(CACHE_CONTROL, "no-cache");
    set(CONTENT_SECURITY_POLICY, POLICY);
    set(REFERRER_POLICY, "no-referrer");
    set(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    if let Ok(tag) = HeaderValue::from_str(&PAGE_TAG) {
        headers.insert(ETAG, tag);
    }
    response
}

async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name) else {
        let hint = "Load the page again: the server may be newer than it.";
        let detail = "the console has no such file";
        return Problem::new(StatusCode::NOT_FOUND, "http/not_found", detail, hint).into_response();
    };
    let compressed = asset.compressed.filter(|_| takes_gzip(&headers));
    let kind = HeaderValue::from_static(asset.kind);
    let mut response = ([(CONTENT_TYPE, kind)], compressed.unwrap_or(asset.bytes)).into_response();
    let headers = response.headers_mut();
    let forever = HeaderValue::from_static("public, max-age=31536000, immutable");
    headers.insert(CACHE_CONTROL, forever);
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if compressed.is_some() {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

async fn licences() -> Response {
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    ([(CONTENT_TYPE, kind)], LICENCES).into_response()
}

/// Whether a request takes gzip. One that gives it the weight 0 does not.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        is_gzip && !parts.any(|weight| matches!(weight, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The names of files that stand in a text behind these marks.
    fn named<'a>(text: &'a str, mark: &'a str) -> impl Iterator<Item = &'a str> {
        text.split(mark).skip(1).filter_map(|rest| rest.split('"').next())
    }

    #[test]
    fn every_file_is_named_by_its_digest_and_every_name_is_a_file() {
        let scripts = ASSETS.iter().filter(|asset| asset.kind == SCRIPT);
        let texts = scripts.map(|asset| str::from_utf8(asset.bytes).unwrap());
        // The bundler writes `"./name"` only where a script loads another one.
        let loaded = texts.flat_map(|text| named(text, "\"./"));
        let all: BTreeSet<&str> = named(PAGE, "\"/assets/").chain(loaded).collect();
        let files: BTreeSet<&str> = ASSETS.iter().map(|asset| &*asset.name).collect();
        assert_eq!(all, files, "build the console");
    }

    #[test]
    fn the_page_holds_no_script_and_no_style() {
        assert!(!PAGE.contains("<style") && !PAGE.contains(" style="));
        assert_eq!(PAGE.matches("<script").count(), 1);
        assert!(PAGE.contains("<script src=\"/assets/boot-"), "the script is a file");
        assert!(PAGE.contains("></script>"), "the script is a file");
        assert!(!PAGE.contains(" on"), "no handler is in the page");
    }

    #[test]
    fn gzip_is_sent_to_those_who_take_it() {
        let check = |value: &str, expected: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, value.parse().unwrap());
            assert_eq!(takes_gzip(&headers), expected, "{value}");
        };
        check("gzip, deflate, br", true);
        check("br;q=1.0, GZIP;q=0.5", true);
        check("br", false);
        check("gzip;q=0", false);
        check("identity", false);
        assert!(!takes_gzip(&HeaderMap::new()));
    }
}
