//! What a session is: ids, records, messages, the tree and the folds over it.
