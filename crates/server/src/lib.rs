//! HTTP, server-sent events and the bus socket over the service.
