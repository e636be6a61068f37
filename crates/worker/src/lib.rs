//! Attaching Bough to an iii engine as a worker.
