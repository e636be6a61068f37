//! Simulated disk, clock and network, oracles and generators: for tests only.
