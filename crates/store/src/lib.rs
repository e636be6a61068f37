//! The Store trait, its adapters and the catalogue.
