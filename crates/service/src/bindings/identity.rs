//! The name of this program among the workers of a bus: that of the worker whose interface it has.

/// The name of the worker, and the id of its settings.
pub const WORKER_NAME: &str = "session-manager";
/// The version of session-manager whose functions, events and errors this program has.
pub const WORKER_VERSION: &str = "1.0.0";
/// What the worker does.
pub const WORKER_DESCRIPTION: &str = "Durable, reactive, branching store of typed conversation entries with six emitted trigger types.";
