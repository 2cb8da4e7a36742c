//! The body of a request: in pieces, so that what many requests have in common is in memory once.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    pieces: std::vec::IntoIter<Bytes>,
    left: u64,
}

impl Outgoing {
    pub fn empty() -> Self {
        Self::of(Vec::new())
    }

    pub fn of_text(text: &str) -> Self {
        Self::of(vec![Bytes::copy_from_slice(text.as_bytes())])
    }

    pub fn of_shared(pieces: &[Arc<str>]) -> Self {
        Self::of(pieces.iter().map(|piece| Bytes::from_owner(SharedText(piece.clone()))).collect())
    }

    pub fn of(pieces: Vec<Bytes>) -> Self {
        Self { left: pieces.iter().map(|piece| piece.len() as u64).sum(), pieces: pieces.into_iter() }
    }

    pub const fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// What is still to be sent.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces.as_slice().iter().map(|piece| &piece[..])
    }
}

struct SharedText(Arc<str>);

impl AsRef<[u8]> for SharedText {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.pieces.next();
        self.left -= piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn pieces_are_sent_one_after_the_other_and_their_length_is_known() {
        let shared: Arc<str> = "é".repeat(3).into();
        let body = Outgoing::of_shared(&["[".into(), shared.clone(), "]".into()]);
        assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(8), false));
        assert_eq!(body.pieces().map(<[u8]>::len).collect::<Vec<_>>(), [1, 6, 1]);
        assert_eq!(body.collect().await.expect("a body").to_bytes(), "[ééé]");
        assert_eq!(Arc::strong_count(&shared), 1, "nothing of it stays");
        assert!(Outgoing::empty().is_end_stream());
    }
}
