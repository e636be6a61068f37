//! Agent events in, sessions of loops out.
