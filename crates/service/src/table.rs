//! The function table: each function is declared once, here.
//!
//! From a row are made the typed method on [`Service`], the dispatch by name, the JSON Schemas, and (by the
//! surfaces) the HTTP routes, the bus registrations and the OpenAPI document.

use std::collections::HashMap;
use std::sync::LazyLock;

use schemars::JsonSchema;
use schemars::r#gen::SchemaSettings;
use serde_json::Value;

use bough_session::{SessionEntry, SessionMeta};
use bough_store::bridge::protocol::{CommitRequest, ReadRequest, StoreAnswer};

use crate::answer::{Answer, Facts, Precondition, Repeat, Tag, TagKind};
use crate::api::*;
use crate::error::ServiceError;
use crate::function::{Function, Method, Route};
use crate::request::Request;
use crate::rules;
use crate::scope::{Right, Scope};
use crate::service::Service;
use crate::used_keys;

/// Every function, in the order in which documents list them.
#[must_use]
pub fn functions() -> &'static [Function] {
    FUNCTIONS
}

/// The function with a name.
#[must_use]
pub fn function(id: &str) -> Option<&'static Function> {
    static BY_ID: LazyLock<HashMap<&'static str, &'static Function>> =
        LazyLock::new(|| FUNCTIONS.iter().map(|function| (function.id, function)).collect());
    BY_ID.get(id).copied()
}

impl Service {
    /// Calls a function by name with a JSON request.
    ///
    /// Unknown fields are ignored and `null` is the same as absent; a wrong type or an unknown word is refused before
    /// any rule runs.
    pub async fn call(
        &self,
        scope: &Scope,
        function_id: &str,
        request: Value,
    ) -> Result<Value, ServiceError> {
        let found = function(function_id)
            .ok_or_else(|| ServiceError::UnknownFunction { function: function_id.to_owned() })?;
        self.answer(scope, found, request.into()).await?.to_value()
    }

    /// Calls a function of the table.
    pub async fn answer(
        &self,
        scope: &Scope,
        function: &Function,
        request: Request,
    ) -> Result<Answer, ServiceError> {
        match self.tenant_key().filter(|_| function.repeat.is_by_key()) {
            Some(key) => used_keys::answer_once(self, scope, *function, request, key).await,
            None => function.run(self, scope, request).await,
        }
    }
}

/// The JSON Schema (draft 07) of a type.
#[must_use]
pub fn schema_of<T: JsonSchema>() -> Value {
    let schema = SchemaSettings::draft07().into_generator().into_root_schema_for::<T>();
    serde_json::to_value(schema).unwrap_or(Value::Bool(true))
}

/// What a row gives, or else what rows have that do not give it.
macro_rules! given {
    (; $default:expr) => {
        $default
    };
    ($given:expr; $default:expr) => {
        $given
    };
}

/// Declares the table and, for each row, the typed method.
macro_rules! functions {
    ($(
        $id:literal $name:ident = $rule:path, ($request:ty) -> $response:ty,
        $right:ident, $route:expr, $description:literal
        $(, operation $operation:literal)?
        $(, if_match $precondition:ident)?
        $(, repeat $repeat:ident)?
        $(, tag $kind:ident $tag:expr)?
        $(, makes $made:expr)?
        $(, stale $stale:expr)?;
    )*) => {
        static FUNCTIONS: &[Function] = &[$(
            Function {
                id: $id,
                operation: given!($($operation)?; stringify!($name)),
                description: $description,
                right: Right::$right,
                route: $route,
                precondition: given!($(Some(Precondition::$precondition))?; None),
                repeat: given!($(Repeat::$repeat)?; Repeat::usual(Right::$right)),
                tag: given!($(Some(TagKind::$kind))?; None),
                makes_session: given!($({ let _: fn(&$response) -> _ = $made; true })?; false),
                request_schema: schema_of::<$request>,
                response_schema: schema_of::<$response>,
                handler: |service, scope, request| Box::pin(async move {
                    const FACTS: Facts<$response> = Facts {
                        tag: given!($(Some($tag))?; None),
                        made: given!($(Some($made))?; None),
                        stale: given!($(Some($stale))?; None),
                    };
                    scope.allow($id, Right::$right)?;
                    let request = request.parse::<$request>()?;
                    let answer = service.$name(&scope, request).await?;
                    Ok(Answer::new(answer, &FACTS, service.is_replay()))
                }),
            },
        )*];

        impl Service {$(
            #[doc = concat!("`", $id, "`: ", $description)]
            pub async fn $name(
                &self,
                scope: &Scope,
                request: $request,
            ) -> Result<$response, ServiceError> {
                scope.allow($id, Right::$right)?;
                $rule(self, scope, request).await
            }
        )*}
    };
}

const fn at(method: Method, path: &'static str) -> Option<Route> {
    Some(Route { method, path })
}

const INTERNAL: Option<Route> = None;

use Method::{Delete, Get, Patch, Post, Put};

functions! {
    "session::create" create = rules::lifecycle::create, (CreateRequest) -> CreateResponse, Write, at(Post, "/v1/sessions"),
        "Create a session with status idle; fires session::created.",
        operation "create_session", repeat ByKey, makes |answer| answer.session_id.clone();
    "session::ensure" ensure = rules::lifecycle::ensure, (EnsureRequest) -> EnsureResponse,
        Write, at(Put, "/v1/sessions/{session_id}"),
        "Make sure that a session with this id exists; fires session::created only when it creates one.",
        operation "ensure_session";
    "session::get" get = rules::lifecycle::get, (GetRequest) -> Option<GetResponse>, Read, INTERNAL,
        "Read one session's metadata record (null when unknown).";
    "session::describe" describe = rules::lifecycle::describe, (GetRequest) -> Option<DescribeResponse>,
        Read, at(Get, "/v1/sessions/{session_id}"),
        "Read what a session says of itself, its active leaf and its version (null when unknown).", operation "get_session",
        tag Session |answer| answer.as_ref().map(|_| Tag::Session);
    "session::list" list = rules::listing::list, (ListRequest) -> ListResponse, Read, INTERNAL,
        "List sessions page by page, in an order, by status, metadata, task and whether they are archived.";
    "session::sessions" sessions = rules::listing::sessions, (ListRequest) -> SessionsResponse, Read, at(Get, "/v1/sessions"),
        "List sessions page by page, each with its details when they are asked for.", operation "list_sessions";
    "session::set-meta" set_meta = rules::meta::set_meta, (SetMetaRequest) -> SetMetaResponse, Write, INTERNAL,
        "Change a session's title, description or metadata; fires session::meta-updated.";
    "session::patch" patch = rules::meta::patch, (PatchRequest) -> PatchResponse, Write, at(Patch, "/v1/sessions/{session_id}"),
        "Change title and description, and merge metadata (RFC 7396); fires session::meta-updated.",
        operation "update_session", if_match Version, tag Change |answer| Some(Tag::Change(answer.version.clone()));
    "session::set-status" set_status = rules::meta::set_status, (SetStatusRequest) -> SetStatusResponse,
        Write, at(Put, "/v1/sessions/{session_id}/status"),
        "Set the status; fires session::status-changed, or nothing when it is the same.";
    "session::set-task" set_task = rules::meta::set_task, (SetTaskRequest) -> SetTaskResponse,
        Write, at(Put, "/v1/sessions/{session_id}/task"),
        "Name what a session works on, for lists to filter by.";
    "session::delete" delete = rules::trash::delete, (DeleteRequest) -> DeleteResponse,
        Write, at(Delete, "/v1/sessions/{session_id}"),
        "Move a session to the trash, where it is kept for a while; fires session::deleted.", operation "delete_session";
    "session::append" append = rules::append::append, (AppendRequest) -> AppendResponse, Write, INTERNAL,
        "Append one entry (idempotent on entry_id, conditional on expected_leaf); fires session::message-added.",
        if_match Leaf, repeat ByKey, tag Leaf |answer| Some(Tag::Leaf(answer.entry_id.clone()));
    "session::append-many" append_many = rules::append::append_many, (AppendManyRequest) -> AppendManyResponse, Write, INTERNAL,
        "Append several messages in order, all or none; fires session::message-added for each.",
        if_match Leaf, repeat ByKey, tag Leaf |answer| Some(Tag::Leaf(answer.last_entry_id.clone()));
    "session::append-entry" append_entry = rules::append::append_entry, (AppendEntryRequest) -> AppendedEntry,
        Write, at(Post, "/v1/sessions/{session_id}/entries"),
        "Append a message in any format, or a document; fires session::message-added.",
        if_match Leaf, repeat ByKey, tag Leaf |answer| Some(Tag::Leaf(answer.entry_id.clone()));
    "session::append-entries" append_entries = rules::append::append_entries, (AppendEntriesRequest) -> AppendEntriesResponse,
        Write, at(Post, "/v1/sessions/{session_id}/entries/batch"),
        "Append messages and documents in one durable write; fires session::message-added for each message.",
        if_match Leaf, repeat ByKey, tag Leaf |answer| answer.entries.last().map(|last| Tag::Leaf(last.entry_id.clone()));
    "session::update-message" update_message = rules::update::update_message, (UpdateMessageRequest) -> UpdateMessageResponse,
        Write, at(Put, "/v1/sessions/{session_id}/entries/{entry_id}"),
        "Replace a message's content (expected_revision guards against others); fires session::message-updated.",
        operation "replace_message",
        if_match Revision, tag Entry |answer| Some(Tag::Entry(answer.revision)), stale UpdateMessageResponse::stale;
    "session::append-delta" append_delta = rules::update::append_delta, (AppendDeltaRequest) -> UpdateMessageResponse,
        Write, at(Post, "/v1/sessions/{session_id}/entries/{entry_id}/delta"),
        "Add text to a block of a message that is being streamed; fires session::message-updated.",
        if_match Revision, repeat ByRevision, tag Step |answer| Some(Tag::Entry(answer.revision)),
        stale UpdateMessageResponse::stale;
    "session::finish-message" finish_message = rules::finish::finish_message, (FinishMessageRequest) -> FinishMessageResponse,
        Write, at(Post, "/v1/sessions/{session_id}/entries/{entry_id}/finish"),
        "End a message that was begun with `stream`: why it stopped, what it cost; fires session::message-updated.";
    "session::messages" messages = rules::reading::messages, (MessagesRequest) -> MessagesResponse, Read, INTERNAL,
        "Read the active path (or the path to an entry), oldest first, page by page, by role.";
    "session::messages-tail" messages_tail = rules::reading::messages_tail, (MessagesRequest) -> MessagesResponse, Read, INTERNAL,
        "Read the same path newest first.";
    "session::get-message" get_message = rules::reading::get_message, (GetMessageRequest) -> Option<GetMessageResponse>,
        Read, INTERNAL,
        "Read one entry with its place and revision (null when unknown).";
    "session::path" path = rules::reading::path, (PathRequest) -> PathResponse, Read, at(Get, "/v1/sessions/{session_id}/messages"),
        "Read the active path (or the path to an entry), oldest first, page by page, in any format.", operation "list_messages",
        tag Session |_| Some(Tag::Session);
    "session::path-tail" path_tail = rules::reading::path_tail, (PathRequest) -> PathResponse,
        Read, at(Get, "/v1/sessions/{session_id}/messages/tail"),
        "Read the same path newest first.", operation "list_newest_messages", tag Session |_| Some(Tag::Session);
    "session::entries" entries = rules::entries::entries, (EntriesRequest) -> EntriesResponse,
        Read, at(Get, "/v1/sessions/{session_id}/entries"),
        "Read entries by ids, by custom type or by the beginning of their ids, page by page.",
        operation "list_entries", tag Session |_| Some(Tag::Session);
    "session::entry" entry = rules::entries::entry, (EntryRequest) -> Option<EntryResponse>,
        Read, at(Get, "/v1/sessions/{session_id}/entries/{entry_id}"),
        "Read one entry with its place and revision, in any format (null when unknown).", operation "get_entry",
        tag Entry |answer| answer.as_ref().map(|found| Tag::Entry(found.entry.revision));
    "session::hide-entries" hide_entries = rules::hide::hide_entries, (HideEntriesRequest) -> HideEntriesResponse,
        Write, at(Post, "/v1/sessions/{session_id}/entries/hide"),
        "Hide entries from every read; what follows them stays. Fires session::message-removed for each.";
    "session::kv::put" put_document = rules::documents::put, (PutDocumentRequest) -> PutDocumentResponse,
        Write, at(Put, "/v1/kv/{scope}/{key}"),
        "Put a JSON document under a key of a scope, if it has the version that is expected of it.",
        if_match Document, repeat ByKey, tag Document |answer| Some(Tag::Document(answer.version));
    "session::kv::write" write_documents = rules::documents::write, (WriteDocumentsRequest) -> WriteDocumentsResponse,
        Write, at(Post, "/v1/kv/{scope}"),
        "Put and delete documents of a scope, all or none, in one durable write.", repeat ByKey;
    "session::kv::get" get_document = rules::documents::get, (GetDocumentRequest) -> Option<Document>,
        Read, at(Get, "/v1/kv/{scope}/{key}"),
        "Read a document by its key (null when unknown).",
        tag Document |answer| answer.as_ref().map(|found| Tag::Document(found.version));
    "session::kv::list" list_documents = rules::documents::list, (ListDocumentsRequest) -> ListDocumentsResponse,
        Read, at(Get, "/v1/kv/{scope}"),
        "Read the documents of a scope in the order of their keys, by the beginning of the keys or by several keys, page by page.";
    "session::kv::delete" delete_document = rules::documents::delete, (DeleteDocumentRequest) -> DeleteDocumentResponse,
        Write, at(Delete, "/v1/kv/{scope}/{key}"),
        "Delete a document, if it has the version that is expected of it.", if_match Document;
    "session::fork" fork = rules::fork::fork, (ForkRequest) -> ForkResponse, Write, at(Post, "/v1/sessions/{session_id}/fork"),
        "Copy the path up to an entry, or the whole tree, into a new session; fires session::created.", operation "fork_session",
        repeat ByKey, makes |answer| answer.session_id.clone();
    "session::set-active-leaf" set_active_leaf = rules::branching::set_active_leaf, (SetActiveLeafRequest) -> SetActiveLeafResponse,
        Write, at(Put, "/v1/sessions/{session_id}/leaf"),
        "Make the active path end at an entry (switch branches).", if_match Leaf;
    "session::clear-active-leaf" clear_active_leaf = rules::branching::clear_active_leaf,
        (ClearActiveLeafRequest) -> ClearActiveLeafResponse, Write, at(Delete, "/v1/sessions/{session_id}/leaf"),
        "Make the active path end before the first entry; the next one begins a tree of its own.", if_match Leaf;
    "session::branches" branches = rules::branching::branches, (BranchesRequest) -> BranchesResponse,
        Read, at(Get, "/v1/sessions/{session_id}/branches"),
        "List the ends of a session's branches, with depth, last activity and label.", operation "list_branches";
    "session::set-label" set_label = rules::branching::set_label, (SetLabelRequest) -> SetLabelResponse,
        Write, at(Put, "/v1/sessions/{session_id}/entries/{entry_id}/label"),
        "Name an entry, or take its name away; fires session::label-changed.";
    "session::raw" raw = rules::raw::raw, (RawRequest) -> StoreAnswer, Read, at(Get, "/v1/sessions/{session_id}/raw"),
        "Read a session as its store keeps it, every branch and every record: for exports and whole trees.",
        operation "read_records";
    "session::usage" usage = rules::views::usage, (UsageRequest) -> UsageResponse, Read, at(Get, "/v1/sessions/{session_id}/usage"),
        "Add up tokens and cost of a session, of a branch and of each model.", operation "get_usage";
    "session::stats" stats = rules::stats::stats, (StatsRequest) -> StatsResponse, Read, at(Get, "/v1/stats"),
        "Add up tokens, cost and time over all sessions, by day, model, tool, project, agent, tenant or session.",
        operation "get_stats";
    "session::tree" tree = rules::tree::tree, (TreeRequest) -> TreeResponse, Read, at(Get, "/v1/sessions/{session_id}/tree"),
        "Read the nodes of a session's tree, every branch, page by page.", operation "get_tree";
    "session::compare" compare = rules::tree::compare, (CompareRequest) -> CompareResponse,
        Read, at(Get, "/v1/sessions/{session_id}/compare"),
        "Show two branches from where they part.", operation "compare_branches";
    "session::context" context = crate::compaction::context::context, (ContextRequest) -> ContextResponse,
        Read, at(Get, "/v1/sessions/{session_id}/context"),
        "What a model would be sent: the path with compactions and summaries applied, within a budget.", operation "get_context";
    "session::plan-compaction" plan_compaction = crate::compaction::plan_compaction,
        (PlanCompactionRequest) -> CompactionResponse, Read, at(Get, "/v1/sessions/{session_id}/compaction"),
        "What compacting a session would do: what a summary would replace, what stays, tokens before and after.";
    "session::compact" compact = crate::compaction::compact, (CompactRequest) -> CompactionResponse,
        Write, at(Post, "/v1/sessions/{session_id}/compaction"),
        "Put a summary in the place of the older part of a conversation; nothing is removed.",
        operation "compact_session", if_match Leaf, tag Leaf |answer| answer.entry_id.clone().map(Tag::Leaf);
    "session::undo-compaction" undo_compaction = crate::compaction::undo_compaction,
        (UndoCompactionRequest) -> UndoCompactionResponse, Write, at(Delete, "/v1/sessions/{session_id}/compaction"),
        "Take the last compaction out of the context again.", if_match Leaf;
    "session::search" search = rules::search::search, (SearchRequest) -> SearchResponse, Read, at(Get, "/v1/search"),
        "Search everything that was said: words, phrases and filters, the best hits first.";
    "session::search-status" search_status = rules::search::search_status, (SearchStatusRequest) -> IndexStatus,
        Read, at(Get, "/v1/search/status"),
        "How far the search index is behind what is stored.", operation "get_search_status";
    "session::reindex" reindex = rules::search::reindex, (ReindexRequest) -> IndexStatus, Admin, at(Post, "/v1/search/reindex"),
        "Build the search index again; searches find more and more while it runs.", operation "rebuild_search_index";
    "session::archive" archive = rules::meta::archive, (ArchiveRequest) -> ArchiveResponse,
        Write, at(Put, "/v1/sessions/{session_id}/archive"),
        "Put a session away: lists leave it out unless they are asked for it.", operation "archive_session";
    "session::unarchive" unarchive = rules::meta::unarchive, (ArchiveRequest) -> ArchiveResponse,
        Write, at(Delete, "/v1/sessions/{session_id}/archive"),
        "Take an archived session back.", operation "unarchive_session";
    "session::list-trash" list_trash = rules::trash::list_trash, (ListTrashRequest) -> ListTrashResponse,
        Read, at(Get, "/v1/trash"),
        "List deleted sessions that can still be brought back.";
    "session::undelete" undelete = rules::trash::undelete, (UndeleteRequest) -> UndeleteResponse,
        Write, at(Post, "/v1/trash/{session_id}/undelete"),
        "Bring a deleted session back; fires session::created.", operation "undelete_session";
    "session::purge" purge = rules::trash::purge, (PurgeRequest) -> PurgeResponse, Admin, at(Delete, "/v1/trash/{session_id}"),
        "Remove a deleted session for good, before its retention ends.", operation "purge_session";
    "session::watch" watch = rules::watching::watch, (WatchRequest) -> WatchResponse, Read, at(Get, "/v1/watch"),
        "Read events after a position, of one session or of all; waits for the next one when asked to.", operation "read_events";
    "session::record" record = crate::recording::record, (RecordRequest) -> RecordResponse,
        Write, at(Post, "/v1/record/{recording_id}"),
        "Record the next events of an agent into sessions of loops; durable when it answers, and may be repeated.",
        operation "record_events";
    "session::recording" recording = crate::recording::recording, (RecordingRequest) -> Option<RecordingResponse>,
        Read, at(Get, "/v1/record/{recording_id}"),
        "Where an open recording stands (null when it is not open).", operation "get_recording";
    "session::loops" loops = crate::recording::loops, (LoopsRequest) -> LoopsResponse,
        Read, at(Get, "/v1/sessions/{session_id}/loops"),
        "List the loops of a recorded session with turns, groups, winners and sub-agents, page by page.", operation "list_loops";
    "session::loop-chain" loop_chain = crate::recording::loop_chain, (LoopChainRequest) -> LoopChainResponse,
        Read, at(Get, "/v1/sessions/{session_id}/loops/{loop_id}/chain"),
        "The loops that lead to a loop, from the first.", operation "get_loop_chain";
    "session::loop-groups" loop_groups = crate::recording::loop_groups, (LoopGroupsRequest) -> LoopGroupsResponse,
        Read, at(Get, "/v1/sessions/{session_id}/loop-groups"),
        "List the groups of parallel loops of a recorded session, with the winner of each.", operation "list_loop_groups";
    "session::spawns" spawns = crate::recording::spawns, (SpawnsRequest) -> SpawnsResponse,
        Read, at(Get, "/v1/sessions/{session_id}/spawns"),
        "The sessions that spawned each other: which loop ran which sub-agent, and what each cost.", operation "list_spawns";
    "session::config-status" config_status = rules::config::config_status, (ConfigStatusRequest) -> ReloadStatus,
        Read, at(Get, "/v1/config/status"),
        "How the last reload of the configuration ended, and how many were refused since the start.",
        operation "get_config_status";
    "session::on-config-change" on_config_change = rules::config::on_config_change, (OnConfigChangeEvent) -> OnConfigChangeResponse,
        Admin, INTERNAL,
        "Internal: read the configuration again and apply it.";
    "session::store::get-meta" store_get_meta = rules::store_protocol::get_meta, (SessionIdRequest) -> Option<SessionMeta>,
        Bridge, INTERNAL,
        "Internal store protocol: read one metadata record (null when unknown).";
    "session::store::put-meta" store_put_meta = rules::store_protocol::put_meta, (PutMetaRequest) -> OkResponse, Bridge, INTERNAL,
        "Internal store protocol: write one metadata record.";
    "session::store::delete-meta" store_delete_meta = rules::store_protocol::delete_meta, (SessionIdRequest) -> OkResponse,
        Bridge, INTERNAL,
        "Internal store protocol: delete one metadata record.";
    "session::store::list-metas" store_list_metas = rules::store_protocol::list_metas, (ListMetasRequest) -> ListMetasResponse,
        Bridge, INTERNAL,
        "Internal store protocol: list every metadata record.";
    "session::store::get-entry" store_get_entry = rules::store_protocol::get_entry, (EntryIdRequest) -> Option<SessionEntry>,
        Bridge, INTERNAL,
        "Internal store protocol: read one entry (null when unknown).";
    "session::store::put-entry" store_put_entry = rules::store_protocol::put_entry, (PutEntryRequest) -> OkResponse,
        Bridge, INTERNAL,
        "Internal store protocol: write one entry.";
    "session::store::list-entries" store_list_entries = rules::store_protocol::list_entries,
        (SessionIdRequest) -> ListEntriesResponse, Bridge, INTERNAL,
        "Internal store protocol: list every entry of a session.";
    "session::store::delete-entries" store_delete_entries = rules::store_protocol::delete_entries, (SessionIdRequest) -> OkResponse,
        Bridge, INTERNAL,
        "Internal store protocol: delete every entry of a session.";
    "session::store::get-active-leaf" store_get_active_leaf = rules::store_protocol::get_active_leaf,
        (SessionIdRequest) -> ActiveLeafResponse, Bridge, INTERNAL,
        "Internal store protocol: read a session's active leaf.";
    "session::store::set-active-leaf" store_set_active_leaf = rules::store_protocol::set_active_leaf,
        (EntryIdRequest) -> OkResponse, Bridge, INTERNAL,
        "Internal store protocol: move a session's active leaf.";
    "session::store::delete-active-leaf" store_delete_active_leaf = rules::store_protocol::delete_active_leaf,
        (SessionIdRequest) -> OkResponse, Bridge, INTERNAL,
        "Internal store protocol: clear a session's active leaf.";
    "session::store::publish-events" store_publish_events = rules::store_protocol::publish_events,
        (PublishEventsRequest) -> PublishEventsResponse, Bridge, INTERNAL,
        "Internal store protocol: take the event envelopes of a bridged instance.";
    "session::store::commit" store_commit = rules::store_protocol::commit, (CommitRequest) -> StoreAnswer, Bridge, INTERNAL,
        "Internal store protocol: one atomic write of a store.";
    "session::store::read" store_read = rules::store_protocol::read, (ReadRequest) -> StoreAnswer, Bridge, INTERNAL,
        "Internal store protocol: one read of a store.";
}
