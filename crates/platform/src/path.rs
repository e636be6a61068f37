use std::fmt;

/// A path below a disk's root: never absolute, never through `..`, made of plain names.
///
/// The empty path is the root itself.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RelPath(String);

/// Why a name cannot be part of a [`RelPath`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathError {
    name: String,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a plain file name", self.name)
    }
}

impl std::error::Error for PathError {}

impl From<PathError> for std::io::Error {
    fn from(error: PathError) -> Self {
        Self::new(std::io::ErrorKind::InvalidInput, error)
    }
}

impl RelPath {
    /// The root itself.
    #[must_use]
    pub fn root() -> Self {
        Self::default()
    }

    /// Parses a path of names joined by `/`.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        text.split('/').try_fold(Self::root(), |path, name| path.join(name))
    }

    /// This path with one more name. The name must be plain: not empty, not `.` or `..`, no separator,
    /// no NUL.
    pub fn join(&self, name: &str) -> Result<Self, PathError> {
        let plain = !name.is_empty()
            && name != "."
            && name != ".."
            && !name.contains(['/', '\\', '\0'])
            && !name.contains(':');
        if !plain {
            return Err(PathError { name: name.to_owned() });
        }
        Ok(if self.0.is_empty() {
            Self(name.to_owned())
        } else {
            Self(format!("{}/{name}", self.0))
        })
    }

    /// The folder that this path is in; the root's parent is the root.
    #[must_use]
    pub fn parent(&self) -> Self {
        Self(self.0.rsplit_once('/').map_or_else(String::new, |(parent, _)| parent.to_owned()))
    }

    /// The last name, empty for the root.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.0.rsplit_once('/').map_or(self.0.as_str(), |(_, name)| name)
    }

    /// Whether this path is `ancestor` or below it.
    #[must_use]
    pub fn starts_with(&self, ancestor: &Self) -> bool {
        ancestor.0.is_empty()
            || self
                .0
                .strip_prefix(ancestor.0.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The path as text, names joined by `/`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_leave_the_root_are_refused() {
        for name in ["", ".", "..", "a/b", "a\\b", "a\0b", "c:", "/etc"] {
            assert!(RelPath::root().join(name).is_err(), "{name:?}");
        }
        assert!(RelPath::parse("a/../b").is_err());
        assert!(RelPath::parse("/a").is_err());
    }

    #[test]
    fn parents_names_and_ancestors() {
        let path = RelPath::parse("sessions/0a/x").unwrap();
        assert_eq!(path.parent().as_str(), "sessions/0a");
        assert_eq!(path.file_name(), "x");
        assert_eq!(RelPath::root().parent(), RelPath::root());
        assert!(path.starts_with(&RelPath::parse("sessions").unwrap()));
        assert!(!path.starts_with(&RelPath::parse("session").unwrap()));
        assert!(path.starts_with(&RelPath::root()));
    }
}
