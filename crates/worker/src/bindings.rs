//! Our types of events, registered with the engine, and the bindings that others make to them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bough_service::{
    EventFilter, EventKind, FeedEvent, FeedItem, Scope, Service, StartAt, Subscription,
};
use iii_sdk::protocol::TriggerRequest;
use iii_sdk::runtime::IIIConnectionState;
use iii_sdk::trigger::{TriggerConfig, TriggerHandler};
use iii_sdk::{Error, IIIClient, RegisterTriggerType, TriggerAction};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

/// The type that other instances bind to hear of everything.
const STORE_EVENTS: &str = "session::store::events";
/// How often a delivery that waits for the engine looks whether it is back.
const PAUSE: Duration = Duration::from_millis(200);

/// The bindings of one worker. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Bindings {
    service: Service,
    client: Arc<IIIClient>,
    runtime: Handle,
    running: Arc<Mutex<HashMap<String, Running>>>,
}

/// A binding that is being served.
struct Running {
    asked: Asked,
    task: AbortHandle,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What a binding asks for.
#[derive(Clone, Debug, PartialEq)]
struct Asked {
    own_type: OwnType,
    function_id: String,
    config: Value,
    metadata: Option<Value>,
    namespace: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OwnType {
    Event(EventKind),
    StoreEvents,
}

impl OwnType {
    fn filter(self, config: &Value) -> Result<EventFilter, Error> {
        match self {
            Self::Event(kind) => {
                EventFilter::parse(kind, config).map_err(|error| Error::Handler(error.to_string()))
            }
            Self::StoreEvents => Ok(EventFilter::everything()),
        }
    }

    fn payload(self, event: &FeedEvent) -> Value {
        match self {
            Self::Event(_) => event.value(),
            Self::StoreEvents => serde_json::to_value(event.envelope()).unwrap_or_default(),
        }
    }
}

/// One type of event, as the engine asks for it.
struct Owner {
    bindings: Bindings,
    own_type: OwnType,
}

#[async_trait]
impl TriggerHandler for Owner {
    async fn register_trigger(&self, config: TriggerConfig) -> Result<(), Error> {
        self.bindings.begin(self.own_type, config).await
    }

    async fn unregister_trigger(&self, config: TriggerConfig) -> Result<(), Error> {
        self.bindings.lock().remove(&config.id);
        Ok(())
    }
}

impl Bindings {
    pub(crate) fn new(service: Service, client: Arc<IIIClient>, runtime: Handle) -> Self {
        Self { service, client, runtime, running: Arc::default() }
    }

    /// Registers every type of event.
    #[expect(
        deprecated,
        reason = "engines before 0.25 know only this way, and later ones still do"
    )]
    pub(crate) fn register_types(&self) {
        let events = EventKind::ALL
            .into_iter()
            .map(|kind| (kind.name(), kind.description(), OwnType::Event(kind)));
        let envelopes = "Internal: every event in an envelope, for bridged instances.";
        let all = events.chain([(STORE_EVENTS, envelopes, OwnType::StoreEvents)]);
        for (name, description, own_type) in all {
            let owner = Owner { bindings: self.clone(), own_type };
            // The type stays registered as long as the client lives; the handle is for unregistering.
            drop(self.client.register_trigger_type(RegisterTriggerType::new(
                name,
                description,
                owner,
            )));
        }
    }

    /// Begins a binding. One that runs already goes on from where it is: the engine tells us of all of them again when it
    /// was away.
    async fn begin(&self, own_type: OwnType, config: TriggerConfig) -> Result<(), Error> {
        let filter = own_type.filter(&config.config)?;
        let asked = Asked {
            own_type,
            function_id: config.function_id,
            config: config.config,
            metadata: config.metadata,
            namespace: config.namespace,
        };
        if self.lock().get(&config.id).is_some_and(|running| running.asked == asked) {
            return Ok(());
        }
        let service = self.service.clone();
        let subscribing =
            async move { service.subscribe(&Scope::owner(), filter, StartAt::Now).await };
        let subscription = self.runtime.spawn(subscribing).await;
        let subscription =
            subscription.map_err(|_| Error::Handler("the binding failed".to_owned()))?;
        let subscription =
            subscription.map_err(|error| Error::Handler(format!("{}: {error}", error.code())))?;
        let delivering = deliver_all(self.client.clone(), asked.clone(), subscription);
        let task = self.runtime.spawn(delivering).abort_handle();
        self.lock().insert(config.id, Running { asked, task });
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn deliver_all(client: Arc<IIIClient>, asked: Asked, mut subscription: Subscription) {
    loop {
        match subscription.next().await {
            Ok(FeedItem::Event(delivery)) => deliver(&client, &asked, &delivery.event).await,
            Ok(FeedItem::Gap(reason)) => {
                tracing::warn!(reason = reason.name(), "a binding of the engine missed events");
            }
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(code = error.code(), "a binding of the engine waits for the store");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Calls the bound function; waits for the engine while it is away, so that nothing piles up and nothing is missed.
async fn deliver(client: &IIIClient, asked: &Asked, event: &FeedEvent) {
    while client.get_connection_state() != IIIConnectionState::Connected {
        tokio::time::sleep(PAUSE).await;
    }
    let request = TriggerRequest {
        function_id: asked.function_id.clone(),
        payload: asked.own_type.payload(event),
        action: Some(TriggerAction::Void),
        timeout_ms: None,
    };
    let mut request = iii_sdk::protocol::TriggerRequestWithMetadata::from(request);
    if let Some(metadata) = &asked.metadata {
        request = request.metadata(metadata.clone());
    }
    if let Some(namespace) = &asked.namespace {
        request = request.namespace(namespace.clone());
    }
    if let Err(error) = client.trigger(request).await {
        // The words may be a handler's; only what kind of failure it was is ours to log.
        let kind = crate::WorkerError::from(error);
        tracing::debug!(
            unreachable = matches!(kind, crate::WorkerError::Unreachable { .. }),
            "an event was not taken"
        );
    }
}
