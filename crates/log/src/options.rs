use crate::limits;

/// When an append is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// After the bytes are on the disk: what was acknowledged survives a power cut.
    #[default]
    Synced,
    /// After the bytes are with the operating system: a crash of the process loses nothing, a power cut or
    /// a crash of the machine may lose the newest records (still as a prefix, in whole batches).
    MayLoseNewestOnPowerCut,
}

/// The thread that seals, indexes and checkpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Maintenance {
    /// A thread of the store's.
    #[default]
    Background,
    /// The thread whose append made it due, after the append is acknowledged. For simulations.
    Inline,
}

/// How a store of logs behaves. The defaults are meant for use; tests make the sizes small.
#[derive(Clone, Debug)]
pub struct Options {
    /// When an append is acknowledged.
    pub durability: Durability,
    /// The thread that does the maintenance.
    pub maintenance: Maintenance,
    /// A segment is closed when it has this many bytes.
    pub segment_bytes: u64,
    /// A checkpoint is due after this many bytes of frames.
    pub checkpoint_every_bytes: u64,
    /// A log of at most this size keeps no index while it is idle.
    pub tiny_bytes: u64,
    /// Rows after the id tables that a checkpoint may leave to be read at opening.
    pub tail_rows_max: u64,
    /// Bytes that one sync makes durable at the most.
    pub group_bytes_max: usize,
    /// Logs held open for writing.
    pub open_logs_max: usize,
    /// Where this process can be reached; written into locks for others to see.
    pub address: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            maintenance: Maintenance::default(),
            segment_bytes: limits::SEGMENT_BYTES,
            checkpoint_every_bytes: limits::CHECKPOINT_EVERY_BYTES,
            tiny_bytes: limits::TINY_BYTES,
            tail_rows_max: limits::TAIL_ROWS_MAX,
            group_bytes_max: limits::GROUP_BYTES_MAX,
            open_logs_max: limits::OPEN_LOGS_MAX,
            address: String::new(),
        }
    }
}
