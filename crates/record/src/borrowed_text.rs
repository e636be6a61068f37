use std::borrow::Cow;

use serde::Deserialize;

/// A text of a JSON document, borrowed from it where it has no escapes.
///
/// A `Cow` borrows only where it is itself a field of a derived reader: inside an `Option` or a `Vec` it copies.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub struct BorrowedText<'a>(#[serde(borrow)] pub Cow<'a, str>);
