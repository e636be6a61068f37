//! Where bindings were when their connection broke, so that a worker that comes back misses nothing.

use std::collections::HashMap;
use std::time::Duration;

use bough_service::FeedCursor;

use super::wire::TriggerFrame;
use crate::limits::{BUS_PARKED_BINDINGS, BUS_PARKED_FOR};

/// The places of bindings whose connection broke.
#[derive(Debug, Default)]
pub(crate) struct Parking(HashMap<Key, (FeedCursor, Duration)>);

/// A binding is the same when its room, its id and all that it asks for are.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key([String; 5]);

impl Key {
    fn of(room: &str, frame: &TriggerFrame) -> Self {
        Self([
            room.to_owned(),
            frame.id.clone(),
            frame.trigger_type.clone(),
            frame.function_id.clone(),
            frame.config.to_string(),
        ])
    }
}

impl Parking {
    /// Keeps the place of a binding for a while.
    pub(crate) fn put(
        &mut self,
        room: &str,
        frame: &TriggerFrame,
        cursor: FeedCursor,
        now: Duration,
    ) {
        if self.0.len() >= BUS_PARKED_BINDINGS {
            self.0.retain(|_, (_, since)| now.saturating_sub(*since) < BUS_PARKED_FOR);
        }
        if self.0.len() < BUS_PARKED_BINDINGS {
            self.0.insert(Key::of(room, frame), (cursor, now));
        }
    }

    /// The place of a binding that is back, if it is back in time.
    pub(crate) fn take(
        &mut self,
        room: &str,
        frame: &TriggerFrame,
        now: Duration,
    ) -> Option<FeedCursor> {
        let (cursor, since) = self.0.remove(&Key::of(room, frame))?;
        (now.saturating_sub(since) < BUS_PARKED_FOR).then_some(cursor)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_binding_finds_its_place_if_it_is_the_same_and_in_time() {
        let frame = TriggerFrame {
            id: "t".into(),
            trigger_type: "session::created".into(),
            function_id: "f".into(),
            config: json!({}),
            metadata: None,
        };
        let cursor: FeedCursor = format!("all.{}", "0".repeat(64)).parse().unwrap();
        let other = TriggerFrame { config: json!({"metadata": {}}), ..frame.clone() };
        let mut parking = Parking::default();
        parking.put("a", &frame, cursor.clone(), Duration::ZERO);
        assert_eq!(parking.take("b", &frame, Duration::ZERO), None);
        assert_eq!(parking.take("a", &other, Duration::ZERO), None);
        assert_eq!(parking.take("a", &frame, Duration::from_secs(1)), Some(cursor.clone()));
        assert_eq!(parking.take("a", &frame, Duration::from_secs(1)), None);
        parking.put("a", &frame, cursor, Duration::ZERO);
        assert_eq!(parking.take("a", &frame, BUS_PARKED_FOR), None);
    }
}
