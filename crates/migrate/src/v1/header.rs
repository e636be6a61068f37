use serde::Serialize;

use super::line_header::LineHeader;
use super::names::SessionFileName;

/// The newest version of pi's header that is known here.
pub const CURRENT_VERSION: u64 = 3;

/// What the first line of a V1 file says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct V1Header {
    /// The session's id.
    pub id: String,
    /// 1 to 3; 1 when the header does not say.
    pub version: u64,
    /// When the session began, milliseconds since the epoch; 0 when it does not say.
    pub timestamp_ms: i64,
    /// The working directory: the truth, whatever the folder is called.
    pub cwd: Option<String>,
    /// The file that this one was forked from.
    pub parent_session: Option<String>,
}

impl V1Header {
    /// Reads a header; `None` when the object is not one.
    pub(crate) fn of(line_header: &LineHeader<'_>) -> Option<Self> {
        let id =
            line_header.id.text().filter(|_| line_header.kind.as_deref() == Some("session"))?;
        Some(Self {
            id: id.to_owned(),
            version: line_header.version.unwrap_or(1),
            timestamp_ms: line_header.timestamp_ms.unwrap_or(0),
            cwd: line_header.cwd.as_deref().map(str::to_owned),
            parent_session: line_header.parent_session.as_deref().map(str::to_owned),
        })
    }

    /// What can be known of a file without a header.
    pub(crate) fn guessed(file_name: &str, fallback_id: &str) -> Self {
        let named = SessionFileName::parse(file_name);
        Self {
            id: named.as_ref().map_or_else(|| fallback_id.to_owned(), |name| name.id.clone()),
            version: CURRENT_VERSION,
            timestamp_ms: named.map_or(0, |name| name.timestamp_ms),
            cwd: None,
            parent_session: None,
        }
    }

    /// The id of the session that this one was forked from, where the file's name carries a whole one.
    pub(crate) fn forked_from(&self) -> Option<String> {
        let path = self.parent_session.as_deref()?;
        let name = SessionFileName::parse(path.rsplit(['/', '\\']).next()?)?;
        Some(name.id).filter(|_| name.spelling == super::names::Spelling::Dashes)
    }
}
