//! The session store for AI agents, as a library.
