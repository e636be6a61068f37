//! Applying the configuration, and applying it again when it changes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bough_platform::{Clock, Disk, Entropy};
use bough_service::{Reload, ReloadError, Service, Settings, schema_of};
use bough_store::shared_state::SharedState;
use serde_json::Value;

use crate::app::App;
use crate::config::{self, AdapterConfig, Config, ConfigError, Loaded, Overrides, beside};
use crate::engine::{ConfigurationOffer, EngineLink};
use crate::guard::{GuardRules, LocalKey, TokenFile, Tokens};
use crate::logs;
use crate::own_address::OwnAddresses;
use crate::run::{NativeWrapper, ServeError};
use crate::stores::OpenError;

/// Looks up an environment variable.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The sources of the configuration, and what does not change while the server runs.
pub(crate) struct Sources {
    pub(crate) flags: Overrides,
    pub(crate) environment: Environment,
    pub(crate) link: Option<Arc<dyn EngineLink>>,
    pub(crate) wrap_native: Option<NativeWrapper>,
    pub(crate) data_dir: PathBuf,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) shared: Arc<dyn SharedState>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) address: String,
    pub(crate) instance: String,
    pub(crate) own: OwnAddresses,
    /// Whether callers need no token if none was created.
    pub(crate) may_be_open: bool,
    pub(crate) local_key: Arc<LocalKey>,
    /// The mark of the configuration file before it was read.
    pub(crate) config_mark: FileMark,
    /// The mark of the token file before it was read.
    pub(crate) tokens_mark: FileMark,
}

/// Applies a configuration, and keeps the running one if a new one cannot be applied.
pub(crate) struct Applier {
    sources: Sources,
    app: App,
    /// The configuration at the start.
    started: Config,
    current: Mutex<Config>,
    tokens: Mutex<Tokens>,
}

impl Sources {
    /// Reads file, environment and flags.
    pub(crate) fn load(&self) -> Result<Loaded, ConfigError> {
        config::load(&self.flags, &*self.environment)
    }

    /// Asks the engine's configuration worker for its part, if there is one.
    pub(crate) async fn ask_engine(&self, config: &mut Config) -> Result<(), ServeError> {
        let Some(link) = &self.link else { return Ok(()) };
        let Some(value) = link.configure(offer(config)).await? else { return Ok(()) };
        Ok(self.take_engine_part(config, value)?)
    }

    fn take_engine_part(&self, config: &mut Config, value: Value) -> Result<(), ConfigError> {
        let worker = config::parse_worker(value, &*self.environment)?;
        *config = config.clone().with_worker(worker);
        Ok(())
    }

    /// The tokens of the data directory; `None` where there is no token file.
    pub(crate) fn load_tokens(&self) -> Result<Option<Tokens>, crate::guard::TokenError> {
        TokenFile::new(&*self.disk).load()
    }

    /// The rules of the guard.
    pub(crate) fn rules(&self, config: &Config, tokens: &Tokens) -> GuardRules {
        let mut hosts = config.allow.hosts.clone();
        let listen = config.listen.rsplit_once(':').map(|(host, _)| host.to_owned());
        let is_name =
            |host: &String| host.parse::<std::net::IpAddr>().is_err() && !host.starts_with('[');
        hosts.extend(listen.filter(is_name));
        GuardRules {
            hosts,
            origins: config.allow.origins.clone(),
            proxies: config.allow.proxies.clone(),
            is_open: !tokens.are_in_use() && !config.tokens.required && self.may_be_open,
            tokens: tokens.clone(),
            local_key: Some(self.local_key.clone()),
        }
    }
}

/// What an engine, or a client of the bus, may read of our settings.
pub(crate) fn offer(config: &Config) -> ConfigurationOffer {
    ConfigurationOffer {
        schema: schema_of::<config::WorkerConfig>(),
        initial_value: serde_json::to_value(config.worker()).unwrap_or_default(),
    }
}

/// The settings of the service that a configuration asks for.
pub(crate) fn service_settings(config: &Config) -> Settings {
    Settings {
        default_list_limit: config.default_list_limit,
        max_list_limit: config.max_list_limit,
        trash_retention: config.retention.trash.duration(),
        idempotency_keys: config.retention.idempotency_keys.duration(),
        stream_abandoned_after: config.streaming.abandoned_after.duration(),
        compaction: Arc::new(config.compaction.settings()),
    }
}

impl Applier {
    pub(crate) fn new(sources: Sources, app: App, config: Config, tokens: Tokens) -> Self {
        Self {
            sources,
            app,
            started: config.clone(),
            current: Mutex::new(config),
            tokens: Mutex::new(tokens),
        }
    }

    pub(crate) fn sources(&self) -> &Sources {
        &self.sources
    }

    fn current(&self) -> Config {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn tokens(&self) -> Tokens {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the token file again. If it is damaged or missing, nothing changes: a server must not open by accident.
    pub(crate) fn reload_tokens(&self) {
        match self.sources.load_tokens() {
            Ok(None) => {
                tracing::warn!(
                    "the token file is gone; the tokens that were in it stay good until a restart"
                );
            }
            Ok(Some(tokens)) => {
                self.app.guard.replace(self.sources.rules(&self.current(), &tokens));
                *self.tokens.lock().unwrap_or_else(PoisonError::into_inner) = tokens;
                tracing::info!("tokens read again");
            }
            Err(error) => tracing::error!(%error, "the tokens stay as they were"),
        }
    }

    /// The configuration from its sources.
    async fn read(&self) -> Result<Result<Config, ConfigError>, ReloadError> {
        let mut config = match self.sources.load() {
            Ok(loaded) => loaded.config,
            Err(error) => return Ok(Err(error)),
        };
        if let Some(link) = &self.sources.link {
            let value = link.configuration().await;
            let value = value.map_err(|error| ReloadError { reason: error.to_string() })?;
            let taken = value.map(|value| self.sources.take_engine_part(&mut config, value));
            if let Some(Err(error)) = taken {
                return Ok(Err(error));
            }
        }
        Ok(Ok(config))
    }

    /// Applies a configuration: all of it, or nothing.
    async fn apply(&self, service: &Service, new: Config) -> Result<(), OpenError> {
        let old = self.current();
        if new == old {
            return Ok(());
        }
        if needs_another_store(&old, &new) {
            self.change_store(service, &old, &new).await?;
        }
        service.set_settings(service_settings(&new));
        self.app.set_limits(new.limits);
        self.app.set_own_settings(offer(&new));
        self.app.guard.replace(self.sources.rules(&new, &self.tokens()));
        logs::change_log(new.log);
        self.report_pending_restart(service, &new);
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = new;
        tracing::info!("the configuration was applied");
        Ok(())
    }

    /// Switches to the store that a configuration asks for.
    async fn change_store(
        &self,
        service: &Service,
        old: &Config,
        new: &Config,
    ) -> Result<(), OpenError> {
        let store = self.sources.open(new).await?;
        let index = self.sources.open_index(new)?;
        let directory = self.sources.directory(new)?;
        // Both may be on one directory, where a session has one writer: release the sessions before the new store opens
        // them.
        let before = service.store();
        let let_go = before.close().await;
        let previous = if new.adapter == old.adapter {
            tracing::info!("sessions are written with another durability from now on");
            service.renew_store(store)
        } else {
            let (from, to) = (old.adapter.name(), new.adapter.name());
            tracing::warn!(from, to, "sessions are stored elsewhere from now on; none were moved");
            service.swap_store(store)
        };
        service.set_search_index(index);
        self.app.inspection.set_directory(directory);
        // Calls that began on the old store still use it; they reopen what they need.
        if let Err(error) = let_go.and(previous.close().await) {
            tracing::error!(%error, "the store before did not close well");
        }
        Ok(())
    }

    /// Reports in the log and in `session::config-status` which changes need a restart.
    fn report_pending_restart(&self, service: &Service, new: &Config) {
        let fields = pending_restart(&self.started, new);
        for field in &fields {
            tracing::warn!(field, "this change takes effect at the next start");
        }
        service.note_waiting(fields);
    }
}

/// Whether the running store cannot take the new settings. Durability concerns the native adapter only.
fn needs_another_store(old: &Config, new: &Config) -> bool {
    let is_native = matches!(new.adapter, AdapterConfig::Native(_));
    new.adapter != old.adapter || (is_native && new.durability != old.durability)
}

/// Fields that are only read at the start, in which two configurations differ.
fn pending_restart(started: &Config, new: &Config) -> Vec<String> {
    let fields = [
        ("data_dir", started.data_dir != new.data_dir),
        ("listen", started.listen != new.listen),
        ("bus", started.bus != new.bus),
        ("engine", started.engine != new.engine),
    ];
    fields.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name.to_owned()).collect()
}

#[async_trait]
impl Reload for Applier {
    async fn reload(&self, service: &Service) -> Result<(), ReloadError> {
        let read = self.read().await?;
        // A start with it would fail, so it is refused now too.
        let usable = read.and_then(|config| {
            config.check_exposure(self.tokens().are_in_use())?;
            Ok(config)
        });
        let outcome = match usable {
            Ok(config) => self.apply(service, config).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = &outcome {
            tracing::error!(error, "the new configuration was refused; what ran before still runs");
        }
        service.note_reload(outcome);
        Ok(())
    }
}

/// Length and time of a file, to detect changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileMark(Option<(u64, i64)>);

/// The mark of a file, without reading it.
pub(crate) fn mark(path: &Path) -> FileMark {
    let stat = beside(path).and_then(|(disk, name)| disk.stat(&name));
    FileMark(stat.ok().flatten().map(|stat| (stat.len, stat.modified_ms)))
}
