//! The frames of the worker protocol: JSON objects, distinguished by `type`.

mod incoming;
mod outgoing;
#[cfg(test)]
mod tests;

use bough_session::RawJson;
use serde_json::{Map, Value};

pub(crate) use incoming::read;
pub(crate) use outgoing::*;

use super::ids::BusId;

/// A frame from a worker.
#[derive(Debug, PartialEq)]
pub(crate) enum Frame {
    RegisterFunction {
        id: String,
        info: FunctionInfo,
    },
    UnregisterFunction {
        id: String,
    },
    RegisterTriggerType {
        id: String,
        info: Map<String, Value>,
    },
    UnregisterTriggerType {
        id: String,
    },
    RegisterTrigger(TriggerFrame),
    UnregisterTrigger {
        id: String,
    },
    TriggerRegistrationResult {
        id: String,
        error: Option<Value>,
    },
    Observe(ObserveFrame),
    Unobserve {
        id: String,
    },
    Invoke(InvokeFrame),
    Result(ResultFrame),
    Reattach {
        previous: String,
        token: String,
    },
    Ping,
    /// A pong, a service, or a frame of a later version: nothing to do.
    Other,
}

/// The description of a function that a worker hosts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FunctionInfo {
    pub(crate) description: Option<Value>,
    pub(crate) request_format: Option<Value>,
    pub(crate) response_format: Option<Value>,
    pub(crate) metadata: Option<Value>,
}

/// A binding of a function to a type of trigger.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TriggerFrame {
    pub(crate) id: String,
    pub(crate) trigger_type: String,
    pub(crate) function_id: String,
    pub(crate) config: Value,
    pub(crate) metadata: Option<Value>,
    /// The engine's namespace that it is for; none is the default one.
    pub(crate) namespace: Option<String>,
    /// How an observer (SDK 0.26) takes its events; `None` for a trigger.
    pub(crate) observer: Option<Deliver>,
}

/// The form of an observer's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deliver {
    /// The event in an envelope with its source.
    Envelope,
    /// The event alone.
    Payload,
}

/// An observer: a binding in the form of SDK 0.26.
#[derive(Debug, PartialEq)]
pub(crate) struct ObserveFrame {
    pub(crate) binding: TriggerFrame,
    /// Something in the request that is not supported here, and its error code.
    pub(crate) refused: Option<(&'static str, &'static str)>,
}

/// A call.
#[derive(Debug, PartialEq)]
pub(crate) struct InvokeFrame {
    /// The id for the answer; none if no answer is wanted.
    pub(crate) invocation_id: Option<Value>,
    pub(crate) function_id: String,
    /// As the caller wrote it: only the function that it is for looks into it.
    pub(crate) data: RawJson,
    pub(crate) action: Action,
    /// Fields that are passed on to the handler as they are.
    pub(crate) passed_on: Map<String, Value>,
}

/// How a call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Wait for the answer.
    Call,
    /// No answer is wanted.
    Void,
    /// By way of a queue.
    Enqueue,
}

/// An answer.
#[derive(Debug, PartialEq)]
pub(crate) struct ResultFrame {
    pub(crate) invocation_id: String,
    pub(crate) result: Option<RawJson>,
    pub(crate) error: Option<Value>,
}

/// A frame that cannot be read. If it has an id, its sender waits for an answer.
#[derive(Debug, PartialEq)]
pub(crate) struct BadFrame {
    pub(crate) reason: String,
    pub(crate) invocation_id: Option<Value>,
    pub(crate) function_id: Option<String>,
}
