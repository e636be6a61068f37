/// Where on a path of entries to start, and in which direction to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathStart<Id> {
    /// At the root, oldest first.
    Root,
    /// After an entry of the path, oldest first.
    After(Id),
    /// At the leaf, newest first.
    Leaf,
    /// Before an entry of the path, newest first.
    Before(Id),
}

impl<Id> PathStart<Id> {
    /// The entry that it names.
    pub const fn named(&self) -> Option<&Id> {
        match self {
            Self::After(id) | Self::Before(id) => Some(id),
            Self::Root | Self::Leaf => None,
        }
    }

    /// The same start with another type of id.
    pub fn map<'a, Other>(&'a self, id: impl FnOnce(&'a Id) -> Other) -> PathStart<Other> {
        match self {
            Self::Root => PathStart::Root,
            Self::After(named) => PathStart::After(id(named)),
            Self::Leaf => PathStart::Leaf,
            Self::Before(named) => PathStart::Before(id(named)),
        }
    }
}
