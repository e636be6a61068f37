//! What the scenarios talk to: the service alone, or a whole server over its bus.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bough_platform::{OsDisk, Platform};
use bough_server::{ServeOptions, Server};
use bough_service::{EventFilter, FeedItem, Scope, Service, StartAt, Subscription, TriggerType};
use bough_store::FsStore;
use bough_testkit::{SimClock, SimEntropy};
use serde_json::Value;

use crate::bus::{BusClient, soon};

/// What the scenarios of a run talk to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Surface {
    /// The service on an `fs` store, without a process or a socket; ids and times are the same in each run.
    #[default]
    Service,
    /// A server in this process, over a WebSocket.
    Bus,
}

/// One session-manager.
pub(crate) enum Instance {
    Service(ServiceInstance),
    Bus(Box<BusInstance>),
}

impl Instance {
    pub(crate) async fn start(surface: Surface) -> Self {
        match surface {
            Surface::Service => Self::Service(ServiceInstance::start()),
            Surface::Bus => {
                let directory = tempfile::tempdir().unwrap();
                let sessions = directory.path().join("sessions");
                let config = format!(
                    "adapter: {{name: fs, config: {{data_dir: '{}'}}}}",
                    sessions.display()
                );
                Self::Bus(Box::new(BusInstance::start(directory, &config).await.unwrap()))
            }
        }
    }

    /// Calls a function. An error is its code.
    pub(crate) async fn call(&mut self, function: &str, request: Value) -> Result<Value, String> {
        match self {
            Self::Service(instance) => instance.call(function, request).await,
            Self::Bus(instance) => {
                let answer = instance.client.call(function, request).await;
                answer.map_err(|message| code_of(&message))
            }
        }
    }

    /// Binds a handler to a type of events. An error is the code of the refusal.
    pub(crate) async fn bind(
        &mut self,
        handler: &str,
        trigger_type: &str,
        config: &Value,
    ) -> Result<(), String> {
        match self {
            Self::Service(instance) => instance.bind(handler, trigger_type, config).await,
            Self::Bus(instance) => instance.client.bind(handler, trigger_type, config).await,
        }
    }

    /// The payload of the next event that a handler gets.
    pub(crate) async fn heard(&mut self, handler: &str) -> Value {
        match self {
            Self::Service(instance) => instance.heard(handler).await,
            Self::Bus(instance) => instance.client.heard(handler).await,
        }
    }

    /// Ends it and starts it again on the same data.
    pub(crate) async fn restart(self) -> Self {
        match self {
            Self::Service(instance) => Self::Service(instance.restart().await),
            Self::Bus(instance) => Self::Bus(Box::new(instance.restart().await)),
        }
    }

    /// Where the `fs` adapter keeps its files.
    pub(crate) fn sessions(&self) -> PathBuf {
        let directory = match self {
            Self::Service(instance) => &instance.directory,
            Self::Bus(instance) => &instance.directory,
        };
        directory.path().join("sessions")
    }

    /// Its client closes the connection and opens another one.
    pub(crate) async fn connect_again(&mut self) {
        let Self::Bus(instance) = self else { panic!("tag the scenario with @bus") };
        instance.client.connect_again(instance.server.bus_address().unwrap()).await;
    }

    /// Ends the binding of a handler.
    pub(crate) async fn unbind(&mut self, handler: &str) {
        let Self::Bus(instance) = self else { panic!("tag the scenario with @bus") };
        instance.client.unbind(handler).await;
    }

    pub(crate) fn bus(&self) -> &BusInstance {
        match self {
            Self::Bus(instance) => instance,
            Self::Service(_) => panic!("tag the scenario with @bus"),
        }
    }
}

/// The code in the message of an error on the bus: `handler error: <code>: <text>`.
fn code_of(message: &str) -> String {
    let text = message.strip_prefix("handler error: ").unwrap_or(message);
    text.split_once(": ").map_or(text, |(code, _)| code).to_owned()
}

/// The service alone. Time moves by a second with each call.
pub(crate) struct ServiceInstance {
    directory: tempfile::TempDir,
    clock: Arc<SimClock>,
    entropy: Arc<SimEntropy>,
    service: Service,
    handlers: BTreeMap<String, Subscription>,
}

impl ServiceInstance {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self::on(directory, Arc::new(SimClock::default()), Arc::new(SimEntropy::new(1)))
    }

    fn on(directory: tempfile::TempDir, clock: Arc<SimClock>, entropy: Arc<SimEntropy>) -> Self {
        let root = directory.path().join("sessions");
        let disk = OsDisk::create(&root).unwrap();
        let platform =
            Platform { disk: Arc::new(disk), clock: clock.clone(), entropy: entropy.clone() };
        let store = FsStore::open(platform, root).unwrap();
        let service = Service::new(Arc::new(store), clock.clone(), entropy.clone());
        Self { directory, clock, entropy, service, handlers: BTreeMap::new() }
    }

    async fn call(&self, function: &str, request: Value) -> Result<Value, String> {
        self.clock.advance(Duration::from_secs(1));
        let answer = self.service.call(&Scope::owner(), function, request).await;
        answer.map_err(|error| error.code().to_owned())
    }

    async fn bind(
        &mut self,
        handler: &str,
        trigger_type: &str,
        config: &Value,
    ) -> Result<(), String> {
        let Some(TriggerType::Event(kind)) = TriggerType::named(trigger_type) else {
            panic!("{trigger_type} is no type of event");
        };
        let filter = EventFilter::parse(kind, config);
        let filter = filter.map_err(|_| "trigger_registration_failed".to_owned())?;
        let subscribed = self.service.subscribe(&Scope::owner(), filter, StartAt::Now).await;
        self.handlers.insert(handler.to_owned(), subscribed.unwrap());
        Ok(())
    }

    async fn heard(&mut self, handler: &str) -> Value {
        let subscription = self.handlers.get_mut(handler).expect("a handler that was bound");
        loop {
            if let FeedItem::Event(delivery) = soon(subscription.next()).await.unwrap() {
                return delivery.event.value();
            }
        }
    }

    async fn restart(self) -> Self {
        self.service.store().close().await.unwrap();
        drop((self.service, self.handlers));
        Self::on(self.directory, self.clock, self.entropy)
    }
}

/// A server in this process, and a client on its bus.
pub(crate) struct BusInstance {
    directory: tempfile::TempDir,
    server: Server,
    client: BusClient,
}

impl BusInstance {
    /// Starts a server with a configuration. An error says why it refused to start.
    pub(crate) async fn start(directory: tempfile::TempDir, config: &str) -> Result<Self, String> {
        write_config(directory.path(), config);
        let server = Server::start(options(directory.path())).await;
        let server = server.map_err(|error| error.to_string())?;
        let client = BusClient::connect(server.bus_address().unwrap()).await;
        Ok(Self { directory, server, client })
    }

    async fn restart(self) -> Self {
        drop(self.client);
        self.server.stop().await;
        let server = Server::start(options(self.directory.path())).await.unwrap();
        let client = BusClient::connect(server.bus_address().unwrap()).await;
        Self { directory: self.directory, server, client }
    }

    /// The URL that a bridge connects to.
    pub(crate) fn url(&self) -> String {
        format!("ws://{}", self.server.bus_address().unwrap())
    }

    /// Replaces the configuration file.
    pub(crate) fn configure(&self, config: &str) {
        write_config(self.directory.path(), config);
    }
}

fn options(directory: &Path) -> ServeOptions {
    ServeOptions {
        data_dir: Some(directory.to_owned()),
        listen: Some("127.0.0.1:0".to_owned()),
        bus: Some("127.0.0.1:0".to_owned()),
        environment: Some(Arc::new(|_| None)),
        ..ServeOptions::default()
    }
}

fn write_config(directory: &Path, config: &str) {
    std::fs::write(directory.join("config.yaml"), config).unwrap();
}
