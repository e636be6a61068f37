//! Nothing but tests: phi-core reads the session files that we write, and we read its own.
