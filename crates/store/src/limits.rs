//! Bounds of the adapters, by name. What a session may hold is bounded in `bough_session::limits`.

/// Sessions of an original main that an instance keeps in memory, beside those that are in use or watched.
pub const ORIGINAL_SESSIONS_MAX: usize = 256;
/// Sessions of an original main that are no longer kept and of which lists still know the details.
pub const ORIGINAL_DETAILS_MAX: usize = 16_384;
