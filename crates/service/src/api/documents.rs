use bough_session::RawJson;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::given;

/// Input of `session::kv::put`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PutDocumentRequest {
    /// The scope, such as the name of an application. It begins with its first document.
    pub scope: String,
    /// The key within the scope. Keys are sorted by their bytes, so that those with a common beginning are listed together.
    pub key: String,
    /// Any JSON value. It is kept byte for byte.
    pub value: RawJson,
    /// Put it only if the document has this version; 0: only if there is none. Otherwise `session/document_conflict`.
    pub expected_version: Option<u64>,
}

/// A document that was put. Output of `session::kv::put`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PutDocumentResponse {
    /// The key.
    pub key: String,
    /// Its version now. Each version is larger than all before it in the scope.
    pub version: u64,
}

/// One document of a batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewDocument {
    /// The key within the scope.
    pub key: String,
    /// Any JSON value. It is kept byte for byte.
    pub value: RawJson,
    /// Put it only if the document has this version; 0: only if there is none.
    pub expected_version: Option<u64>,
}

/// One document that a batch takes away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DocumentRemoval {
    /// The key within the scope.
    pub key: String,
    /// Take it away only if the document has this version.
    pub expected_version: Option<u64>,
}

/// Input of `session::kv::write`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WriteDocumentsRequest {
    /// The scope.
    pub scope: String,
    /// Documents to put, all or none, in one durable write. Each key may be there once.
    #[serde(default)]
    pub put: Vec<NewDocument>,
    /// Documents to take away in the same write. Those that are not there are passed over.
    #[serde(default)]
    pub delete: Vec<DocumentRemoval>,
}

/// Output of `session::kv::write`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WriteDocumentsResponse {
    /// The documents that were put, in the order of the request.
    pub documents: Vec<PutDocumentResponse>,
    /// How many were taken away.
    pub deleted: usize,
}

/// Input of `session::kv::get`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GetDocumentRequest {
    /// The scope.
    pub scope: String,
    /// The key.
    pub key: String,
}

/// A document. Output of `session::kv::get`; `null` when there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Document {
    /// The key.
    pub key: String,
    /// Its version.
    pub version: u64,
    /// When it was first put, milliseconds since epoch.
    pub created_at: i64,
    /// When it was put last, milliseconds since epoch.
    pub updated_at: i64,
    /// The value, byte for byte as it was put. Absent where only keys were asked for.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RawJson")]
    pub value: Option<RawJson>,
}

/// Input of `session::kv::list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListDocumentsRequest {
    /// The scope.
    pub scope: String,
    /// Only keys that begin so.
    pub prefix: Option<String>,
    /// These keys, in this order; those that do not exist are left out. In a query, the parameter is repeated.
    pub keys: Option<Vec<String>>,
    /// Leave the values out. Default false.
    pub keys_only: Option<bool>,
    /// Page size. Default 50, clamped to the configured maximum.
    pub limit: Option<usize>,
    /// End the page before it is larger than this many bytes of documents; it has one document at least. Default 8 MiB.
    pub max_bytes: Option<usize>,
    /// Where the previous page ended: its `next_cursor`.
    pub cursor: Option<String>,
}

/// Output of `session::kv::list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListDocumentsResponse {
    /// One page, in the order of the keys.
    pub documents: Vec<Document>,
    /// Present when more pages remain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Input of `session::kv::delete`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeleteDocumentRequest {
    /// The scope.
    pub scope: String,
    /// The key.
    pub key: String,
    /// Take it away only if the document has this version. Otherwise `session/document_conflict`.
    pub expected_version: Option<u64>,
}

/// Output of `session::kv::delete`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeleteDocumentResponse {
    /// Whether it was there.
    pub deleted: bool,
}
