//! Every session rule in one place, on any store, with a live feed.
