//! Answers that may be large: written item by item while the client reads them.
//!
//! Nobody ever has the whole text. What was read from the store is turned into text an item at a time and dropped; a
//! client that stops reading holds the rest of what was read and one piece of text. An answer that is small has a
//! length and is whole.
//!
//! An item that cannot be written once the client has the beginning breaks the answer off: a client that reads to the
//! end of the body notices, and the log says why.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::StatusCode;
use hyper::body::Frame;
use hyper::header::CONTENT_TYPE;
use serde::Serialize;
use tickwheel_core::catch_panic::catch_panic;

use crate::error::ApiResult;
use crate::memory::SMALL_BYTES_MAX;

/// About how much text is made at a time; an item is never split.
const PIECE_BYTES: usize = 16 << 10;

/// A JSON document with one long array in it.
pub struct Streamed<I, H> {
    /// Up to the first item.
    head: Vec<u8>,
    items: I,
    /// After the last item.
    tail: Vec<u8>,
    /// Held until the client has it all; of a small answer, until it is written.
    held: H,
}

impl<T, I, H> Streamed<I, H>
where
    T: Serialize,
    I: Iterator<Item = ApiResult<T>> + Send + 'static,
    H: Send + 'static,
{
    /// The object `before`, with one more field at its end: the array of these items.
    pub fn field_of(before: &impl Serialize, field: &str, items: I, held: H) -> Self {
        let mut head = json(before);
        let end = head.pop();
        debug_assert_eq!(end, Some(b'}'), "only an object has fields");
        if head.len() > 1 {
            head.push(b',');
        }
        head.extend_from_slice(&json(&field));
        head.extend_from_slice(b":[");
        Self { head, items, tail: b"]}".to_vec(), held }
    }

    /// A page of a list.
    pub fn page(items: I, next_cursor: Option<&str>, held: H) -> Self {
        let mut tail = br#"],"next_cursor":"#.to_vec();
        tail.extend_from_slice(&json(&next_cursor));
        tail.push(b'}');
        Self { head: br#"{"items":["#.to_vec(), items, tail, held }
    }

    fn answer(self) -> ApiResult<Response> {
        let Self { head, items, tail, held } = self;
        let mut writer = Writer { items, tail: Some(tail), is_first: true };
        // As long as nothing is sent, what goes wrong is a proper refusal.
        let mut begun = head;
        writer.write(&mut begun, SMALL_BYTES_MAX)?;
        let body = if writer.tail.is_none() {
            Body::from(begun)
        } else {
            Body::new(StreamedBody { begun: Some(begun.into()), writer: Some(writer), _held: held })
        };
        Ok((StatusCode::OK, [(CONTENT_TYPE, "application/json")], body).into_response())
    }
}

impl<T, I, H> IntoResponse for Streamed<I, H>
where
    T: Serialize,
    I: Iterator<Item = ApiResult<T>> + Send + 'static,
    H: Send + 'static,
{
    fn into_response(self) -> Response {
        self.answer().unwrap_or_else(IntoResponse::into_response)
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("what is answered can be written as JSON")
}

/// What is still to be written. It is over when there is no tail any more.
struct Writer<I> {
    items: I,
    tail: Option<Vec<u8>>,
    is_first: bool,
}

impl<T: Serialize, I: Iterator<Item = ApiResult<T>>> Writer<I> {
    /// Adds to `text` until it has `bytes_max`, or until there is nothing more to add.
    fn write(&mut self, text: &mut Vec<u8>, bytes_max: usize) -> ApiResult<()> {
        while text.len() < bytes_max {
            let Some(item) = self.items.next().transpose()? else {
                text.extend(self.tail.take().unwrap_or_default());
                return Ok(());
            };
            if !std::mem::take(&mut self.is_first) {
                text.push(b',');
            }
            serde_json::to_writer(&mut *text, &item).expect("what is answered can be written as JSON");
        }
        Ok(())
    }
}

/// The body of an answer that is being written.
struct StreamedBody<I, H> {
    begun: Option<Bytes>,
    /// `None` once it broke.
    writer: Option<Writer<I>>,
    _held: H,
}

impl<T, I, H> StreamedBody<I, H>
where
    T: Serialize,
    I: Iterator<Item = ApiResult<T>>,
{
    fn next_piece(&mut self) -> Option<Result<Bytes, BrokenOff>> {
        if let Some(begun) = self.begun.take() {
            return Some(Ok(begun));
        }
        let mut writer = self.writer.take().filter(|writer| writer.tail.is_some())?;
        let mut text = Vec::with_capacity(PIECE_BYTES + PIECE_BYTES / 4);
        match catch_panic(|| writer.write(&mut text, PIECE_BYTES)) {
            Ok(Ok(())) => {
                self.writer = Some(writer);
                Some(Ok(text.into()))
            }
            Ok(Err(error)) => {
                tracing::error!(%error, "an answer ended early");
                Some(Err(BrokenOff))
            }
            Err(_) => {
                tracing::error!("an answer ended early: the server has a fault");
                Some(Err(BrokenOff))
            }
        }
    }
}

/// The client has the beginning of an answer, and the rest cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("the rest of the answer could not be made")]
struct BrokenOff;

// Nothing in it is ever pinned.
impl<I, H> Unpin for StreamedBody<I, H> {}

impl<T, I, H> hyper::body::Body for StreamedBody<I, H>
where
    T: Serialize,
    I: Iterator<Item = ApiResult<T>>,
{
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        Poll::Ready(self.next_piece().map(|piece| piece.map(Frame::data)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http_body_util::BodyExt;
    use hyper::header::CONTENT_LENGTH;
    use serde_json::{Value, json};
    use tickwheel_protocol::Code;

    use super::*;
    use crate::error::ApiError;

    fn texts(count: usize) -> impl Iterator<Item = ApiResult<String>> + Send + 'static {
        (0..count).map(|_| Ok("x".repeat(1_000)))
    }

    async fn value_of(response: Response) -> Value {
        let text = response.into_body().collect().await.expect("a whole answer").to_bytes();
        serde_json::from_slice(&text).expect("JSON")
    }

    #[tokio::test]
    async fn an_answer_is_the_same_document_whether_it_is_small_or_large() {
        for count in [0, 1, 2, 64, 65, 66, 3_000] {
            let expected: Vec<String> = texts(count).map(Result::unwrap).collect();
            let page = Streamed::page(texts(count), Some("next"), ()).into_response();
            assert_eq!(page.headers()[CONTENT_TYPE], "application/json");
            assert_eq!(value_of(page).await, json!({"items": expected, "next_cursor": "next"}), "{count}");
            let object = Streamed::field_of(&json!({"id": 7}), "tasks", texts(count), ()).into_response();
            assert_eq!(value_of(object).await, json!({"id": 7, "tasks": expected}), "{count}");
        }
        let bare = Streamed::field_of(&json!({}), "tasks", texts(1), ()).into_response();
        assert_eq!(value_of(bare).await["tasks"].as_array().unwrap().len(), 1);
        assert_eq!(
            value_of(Streamed::page(texts(0), None, ()).into_response()).await["next_cursor"],
            Value::Null
        );
    }

    #[tokio::test]
    async fn only_what_the_client_reads_is_made_and_what_is_held_is_held_until_the_end() {
        let (made, held) = (Arc::new(AtomicUsize::new(0)), Arc::new(()));
        let counted = made.clone();
        let items = texts(3_000).inspect(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        let response = Streamed::page(items, None, held.clone()).into_response();
        assert_eq!(response.headers().get(CONTENT_LENGTH), None);
        let mut body = response.into_body();
        for pieces in 1..=10 {
            body.frame().await.unwrap().unwrap();
            let bytes_max = SMALL_BYTES_MAX + pieces * PIECE_BYTES;
            assert!(made.load(Ordering::Relaxed) * 1_000 < bytes_max + 1_000);
            assert_eq!(Arc::strong_count(&held), 2);
        }
        drop(body);
        assert_eq!(Arc::strong_count(&held), 1);
        // A small one lets go when it is written.
        let small = Streamed::page(texts(3), None, held.clone()).into_response();
        assert_eq!(Arc::strong_count(&held), 1);
        drop(small);
    }

    #[tokio::test]
    async fn what_breaks_early_is_refused_and_what_breaks_late_breaks_off() {
        let broken = |after: usize| {
            let fault = || Err(ApiError::new(Code::Internal, "on purpose"));
            Streamed::page(texts(after).chain(std::iter::once_with(fault)), None, ()).into_response()
        };
        assert_eq!(broken(3).status(), StatusCode::INTERNAL_SERVER_ERROR);
        let late = broken(300);
        assert_eq!(late.status(), StatusCode::OK);
        assert!(late.into_body().collect().await.is_err());
        let panics = texts(300).chain(std::iter::once_with(|| panic!("on purpose")));
        let response = Streamed::page(panics, None, ()).into_response();
        assert!(response.into_body().collect().await.is_err());
    }
}
