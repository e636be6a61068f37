//! Calls that a wrapping disk passes on unchanged.

/// Inside an `impl` of [`Disk`](bough_platform::Disk) or [`File`](bough_platform::File): passes the named calls
/// on to the wrapped one, which is the field before the colon.
#[macro_export]
macro_rules! pass_on {
    ($inner:tt: $($call:ident),+ $(,)?) => { $($crate::pass_on!(@ $inner $call);)+ };
    (@ $inner:tt rename) => {
        fn rename(
            &self,
            from: &::bough_platform::RelPath,
            to: &::bough_platform::RelPath,
        ) -> ::std::io::Result<()> {
            self.$inner.rename(from, to)
        }
    };
    (@ $inner:tt list) => {
        fn list(
            &self,
            path: &::bough_platform::RelPath,
        ) -> ::std::io::Result<Vec<::bough_platform::Listed>> {
            self.$inner.list(path)
        }
    };
    (@ $inner:tt stat) => {
        fn stat(
            &self,
            path: &::bough_platform::RelPath,
        ) -> ::std::io::Result<Option<::bough_platform::Stat>> {
            self.$inner.stat(path)
        }
    };
    (@ $inner:tt lock) => {
        fn lock(
            &self,
            path: &::bough_platform::RelPath,
            holder: &str,
        ) -> Result<Box<dyn ::bough_platform::Lock>, ::bough_platform::LockError> {
            self.$inner.lock(path, holder)
        }
    };
    (@ $inner:tt lock_holder) => {
        fn lock_holder(
            &self,
            path: &::bough_platform::RelPath,
        ) -> ::std::io::Result<Option<String>> {
            self.$inner.lock_holder(path)
        }
    };
    (@ $inner:tt copy_permissions) => {
        fn copy_permissions(
            &self,
            from: &::bough_platform::RelPath,
            to: &::bough_platform::RelPath,
        ) -> ::std::io::Result<()> {
            self.$inner.copy_permissions(from, to)
        }
    };
    (@ $inner:tt len) => {
        fn len(&self) -> ::std::io::Result<u64> {
            self.$inner.len()
        }
    };
    (@ $inner:tt read_at) => {
        fn read_at(&self, at: u64, out: &mut [u8]) -> ::std::io::Result<usize> {
            self.$inner.read_at(at, out)
        }
    };
    (@ $inner:tt write_at) => {
        fn write_at(&self, at: u64, bytes: &[u8]) -> ::std::io::Result<()> {
            self.$inner.write_at(at, bytes)
        }
    };
    (@ $inner:tt append) => {
        fn append(&self, bytes: &[u8]) -> ::std::io::Result<u64> {
            self.$inner.append(bytes)
        }
    };
    (@ $inner:tt set_len) => {
        fn set_len(&self, len: u64) -> ::std::io::Result<()> {
            self.$inner.set_len(len)
        }
    };
    (@ $inner:tt $call:ident) => {
        fn $call(&self, path: &::bough_platform::RelPath) -> ::std::io::Result<()> {
            self.$inner.$call(path)
        }
    };
}
