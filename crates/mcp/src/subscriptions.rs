use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::host::{Changes, Host};
use crate::limits::{CHANGES_RETRY, SUBSCRIPTIONS_MAX};
use crate::protocol::{Wire, finish, needed, no_resource};
use crate::rpc::{Request, RpcError, result_text};

/// The method by which a stateless client follows changes.
pub const LISTEN: &str = "subscriptions/listen";

const META_SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// The subscriptions of one client, and the position up to which it was notified.
///
/// A client with a handshake has one for its connection. A stateless one has one for each request that listens, and all
/// its notifications carry the id of that request.
#[derive(Debug, Default)]
pub struct Subscriptions {
    id: Option<Value>,
    uris: BTreeSet<String>,
    lists: bool,
    position: Option<String>,
}

impl Subscriptions {
    /// The subscriptions of a client with a handshake: it is notified of added and removed resources without asking.
    pub(crate) fn of_handshake() -> Self {
        Self { lists: true, ..Self::default() }
    }

    /// The subscriptions that a request asks for, and the notification that confirms them, which is
    /// sent first.
    pub async fn listen(host: &dyn Host, request: &Request) -> Result<(Self, String), RpcError> {
        let Some(Value::Object(asked)) = request.params.get("notifications") else {
            return Err(RpcError::bad_params("`notifications` is missing, or not an object"));
        };
        let mut wanted = Self { id: Some(request.id.clone()), ..Self::default() };
        wanted.lists = asked.get("resourcesListChanged") == Some(&Value::Bool(true));
        let uris = asked.get("resourceSubscriptions").and_then(Value::as_array);
        for uri in uris.into_iter().flatten() {
            let uri = uri.as_str().ok_or_else(|| {
                RpcError::bad_params("`resourceSubscriptions` is a list of addresses")
            })?;
            wanted.add(host, Wire::Stateless, uri).await?;
        }
        // Take the position before the confirmation: the client is notified of every change from here
        // on.
        wanted.position = Some(host.changes(None).await?.next);
        let mut accepted = Map::new();
        if wanted.lists {
            accepted.insert("resourcesListChanged".to_owned(), Value::Bool(true));
        }
        if !wanted.uris.is_empty() {
            accepted.insert("resourceSubscriptions".to_owned(), json!(wanted.uris));
        }
        let method = "notifications/subscriptions/acknowledged";
        let notifications = wanted.notification(method, json!({ "notifications": accepted }));
        Ok((wanted, notifications))
    }

    /// The last message to a client, if the server ends the listening.
    #[must_use]
    pub fn end_text(&self) -> String {
        let id = self.id.clone().unwrap_or_default();
        let mut result = finish(LISTEN, json!({}));
        if let Some(meta) = result.get_mut("_meta").and_then(Value::as_object_mut) {
            meta.insert(META_SUBSCRIPTION.to_owned(), id.clone());
        }
        result_text(&id, &result)
    }

    /// Subscribes to one resource.
    pub(crate) async fn add(
        &mut self,
        host: &dyn Host,
        wire: Wire,
        uri: &str,
    ) -> Result<(), RpcError> {
        if self.uris.len() >= SUBSCRIPTIONS_MAX && !self.uris.contains(uri) {
            let text =
                format!("at most {SUBSCRIPTIONS_MAX} resources can be subscribed to at once");
            return Err(RpcError::bad_params(text));
        }
        if !host.has(uri).await? {
            return Err(no_resource(wire, uri));
        }
        self.uris.insert(uri.to_owned());
        Ok(())
    }

    /// `resources/subscribe` and `resources/unsubscribe` of a client with a handshake; `None` for other methods.
    pub(crate) async fn change(
        &mut self,
        host: &dyn Host,
        request: &Request,
    ) -> Option<Result<Value, RpcError>> {
        let is_added = match request.method.as_str() {
            "resources/subscribe" => true,
            "resources/unsubscribe" => false,
            _ => return None,
        };
        let uri = match needed(&request.params, "uri") {
            Ok(uri) => uri,
            Err(error) => return Some(Err(error)),
        };
        if is_added {
            let wire = Wire::Handshake { subscribes: true };
            if let Err(error) = self.add(host, wire, uri).await {
                return Some(Err(error));
            }
        } else {
            self.uris.remove(uri);
        }
        Some(Ok(json!({})))
    }

    /// Waits for changes, and returns notifications, each on one line. Cancel safe.
    pub async fn next(&mut self, host: &dyn Host) -> Vec<String> {
        loop {
            match host.changes(self.position.as_deref()).await {
                Ok(changes) => {
                    let notifications = self.notifications(&changes);
                    self.position = Some(changes.next);
                    if !notifications.is_empty() {
                        return notifications;
                    }
                }
                Err(_) => tokio::time::sleep(CHANGES_RETRY).await,
            }
        }
    }

    pub(crate) fn notifications(&self, changes: &Changes) -> Vec<String> {
        let mut notifications = Vec::new();
        if self.lists && (changes.list_changed || changes.gap) {
            notifications
                .push(self.notification("notifications/resources/list_changed", json!({})));
        }
        let updated = self.uris.iter().filter(|uri| changes.gap || changes.updated.contains(*uri));
        notifications.extend(updated.map(|uri| {
            self.notification("notifications/resources/updated", json!({ "uri": uri }))
        }));
        notifications
    }

    fn notification(&self, method: &str, mut params: Value) -> String {
        if let (Some(id), Some(fields)) = (&self.id, params.as_object_mut()) {
            fields.insert("_meta".to_owned(), json!({ META_SUBSCRIPTION: id }));
        }
        json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()
    }
}
