//! Bytes in order, durable: the hash-chained log under every session.
