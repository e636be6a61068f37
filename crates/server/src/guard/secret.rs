//! Texts that cannot be guessed.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bough_platform::Entropy;

/// How long a secret is, as text.
pub(super) const SECRET_CHARS: usize = 43;

/// 32 random bytes in base64url.
pub(super) fn draw_secret(entropy: &dyn Entropy) -> io::Result<String> {
    let mut secret = [0; 32];
    entropy.fill(&mut secret)?;
    Ok(URL_SAFE_NO_PAD.encode(secret))
}
