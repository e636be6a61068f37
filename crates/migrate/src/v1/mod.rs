//! pi's session files: reading them as a stream, placing their entries, serving them live.

mod append;
mod file;
mod header;
mod line_header;
mod line_record;
mod lines;
mod links;
mod live;
mod map;
mod names;
mod report;
mod source_line;
mod sqlite;
mod time;

pub use file::{OsV1Files, V1File, V1Files, V1Format};
pub use header::{CURRENT_VERSION, V1Header};
pub use line_record::V1_KIND;
pub use lines::{Content, Line, Lines, Snapshot};
pub use live::LiveV1;
pub use names::{SessionFileName, Spelling};
pub use report::{Finding, FindingKind, V1Report};
pub use time::{format_iso, parse_iso};

pub(crate) use line_header::{Field, ParsedLine, id_in, parse_line};
pub(crate) use line_record::{Form, v1_record};
pub(crate) use lines::digest_of_prefix;
pub(crate) use links::Node;
pub(crate) use live::{LinePlace, LineReader, Taken, fallback_id};
pub(crate) use map::{ContentDigest, Mapper, Tally, Want};
pub(crate) use source_line::{SourceLine, source_json, source_line, source_line_of};
pub(crate) use sqlite::SqliteSession;
