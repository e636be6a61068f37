//! A real server on loopback, asked by real clients.

mod bridge;
mod bus;
mod client;
mod events;
mod guard;
mod http;
mod place;
mod reload;
mod tenants;
