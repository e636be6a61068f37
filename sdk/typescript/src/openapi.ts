/**
 * The shapes of the OpenAPI document. This file is made by tools/make-types.mjs and compared with the document by
 * tests/typescript/run.sh; change the server's types instead.
 */

export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description A message of the transcript, told apart by `role`. */
        AgentMessage: components["schemas"]["UserMessage"] | components["schemas"]["AssistantMessage"] | components["schemas"]["FunctionResultMessage"] | components["schemas"]["CustomMessage"];
        /** @description Input of `session::append-delta`: add text to a message that is still being written. */
        AppendDeltaRequest: {
            /** @description Which block, counted from 0. The number of blocks that there are begins a new one. */
            block: number;
            /** @description Write only if this still is the entry's revision. Otherwise nothing is written, and the answer says the revision that is there: 409 `session/revision_conflict` over HTTP, `{ updated: false }` on the bus. */
            expected_revision?: number | null;
            /** @description The id of the call, when this begins a block of kind `tool_arguments`. */
            function_call_id?: string | null;
            /** @description The function that is called, when this begins a block of kind `tool_arguments`. */
            function_id?: string | null;
            /** @description The kind of the block, when this begins it; otherwise it may be left out. Default `text`. */
            kind?: components["schemas"]["DeltaBlock"] | null;
            /** @description Opaque correlation, shown on the event. */
            origin?: components["schemas"]["JsonObject"] | null;
            /** @description What to add at the block's end. */
            text: string;
        };
        /** @description Input of `session::append-entries`. */
        AppendEntriesRequest: {
            /** @description Whether to create the session when there is none. Default false. */
            create?: boolean | null;
            /** @description Appended in order, all of them or none, in one durable write. */
            entries: components["schemas"]["NewEntry"][];
            /** @description Append only if the active leaf still is this entry (`""` for a session without entries). Labels do not count. `null` sets no condition. */
            expected_leaf?: string | null;
            /** @description Changes of the session's title, description and metadata, in the same write. */
            meta?: components["schemas"]["MetaPatch"] | null;
        };
        /** @description Output of `session::append-entries`. */
        AppendEntriesResult: {
            /** @description The entries, in the order of the request. */
            entries: components["schemas"]["AppendedEntry"][];
        };
        /** @description Input of `session::append-entry`: exactly one of `message` and `custom`. */
        AppendEntryRequest: {
            /** @description Whether to create the session when there is none. Default false. */
            create?: boolean | null;
            /** @description A document of the application, kept byte for byte. */
            custom?: components["schemas"]["OpaqueBody"] | null;
            /** @description Id chosen by the caller. Appending it again with the same content changes nothing; with another content it is refused. */
            entry_id?: string | null;
            /** @description Append only if the active leaf still is this entry (`""` for a session without entries). Labels do not count. `null` sets no condition. */
            expected_leaf?: string | null;
            /** @description The format of the message. Default: what the session's metadata has as `message_format`, or else `bough`. */
            format?: components["schemas"]["Format"] | null;
            /** @description A message in that format. It is kept as it came. */
            message?: components["schemas"]["MessageInFormat"] | null;
            /** @description Opaque correlation, kept with the entry and shown on its events. */
            origin?: components["schemas"]["JsonObject"] | null;
            /** @description The parent, when it is not the active leaf; `null` begins a new tree. */
            parent_id?: string | null;
            /** @description Whether the message streams: it grows by deltas until it is finished. For messages of the model only. */
            stream?: boolean | null;
        };
        /** @description An entry that was appended, or was there already. Output of `session::append-entry`. */
        AppendedEntry: {
            /** @description The entry's id. */
            entry_id: string;
            /** @description Its parent; `null` at a root. */
            parent_id?: string | null;
            /** @description How often its content was changed since: 0, unless the entry was there already and has changed. */
            revision: number;
            /**
             * Format: int64
             * @description When it was appended, milliseconds since epoch.
             */
            timestamp: number;
        };
        /** @description Input of `session::archive` and `session::unarchive`. */
        ArchiveRequest: Record<string, never>;
        /** @description Output of `session::archive` and `session::unarchive`. */
        ArchiveResult: {
            /** @description Whether the session is archived now. */
            archived: boolean;
            /** @description Whether this call changed it. */
            changed: boolean;
        };
        /** @description A session was archived, or taken back. */
        ArchivedEvent: {
            /** @description Whether it is archived now. */
            archived: boolean;
            /** @description The session. */
            session_id: string;
            /**
             * Format: int64
             * @description When it changed, milliseconds since epoch.
             */
            timestamp: number;
        };
        /**
         * @description Whether a list shows archived sessions.
         *
         *     - `exclude`: Leave them out.
         *     - `include`: Show them among the others.
         *     - `only`: Show nothing else.
         * @enum {string}
         */
        ArchivedFilter: "exclude" | "include" | "only";
        /** @description Said by the model. */
        AssistantMessage: {
            /** @description What was said. */
            content: components["schemas"]["ContentBlock"][];
            /** @description What went wrong, by kind. */
            error_kind?: components["schemas"]["ErrorKind"] | null;
            /** @description What went wrong, in words. */
            error_message?: string | null;
            /** @description The model's name. */
            model: string;
            /** @description The provider's own word for why it stopped, untouched. */
            native_stop_reason?: string | null;
            /** @description Who served the model. */
            provider: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            role: "assistant";
            /** @description Why the model stopped. Absent while the message streams. */
            stop_reason?: components["schemas"]["StopReason"];
            /**
             * Format: int64
             * @description Milliseconds since the epoch, by the caller's clock.
             */
            timestamp: number;
            /** @description What it cost. */
            usage?: components["schemas"]["Usage"] | null;
            /** @description Notices that did not stop the message, such as a parameter that was dropped. */
            warnings?: string[] | null;
        };
        /** @description One branch, by the entry at its end. */
        Branch: {
            /** @description Whether the active path ends here. */
            active: boolean;
            /** @description How many entries lead to it, itself included. */
            depth: number;
            /** @description The entry at the end of the branch. */
            entry_id: string;
            /** @description The label of the entry at its end, or of the one that the entry at its end labels. */
            label?: string | null;
            /**
             * Format: int64
             * @description When something last happened on it, milliseconds since epoch.
             */
            last_activity: number;
        };
        /** @description The ends of the branches. */
        BranchHeadsRawRead: {
            /** @description Only those that are older than this entry. */
            before?: string | null;
            /** @description How many at most; clamped to the configured page size. */
            limit: number;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            op: "branch_heads";
        };
        /** @description One side of a comparison. */
        BranchSide: {
            /** @description How many entries the other side does not have. */
            count: number;
            /** @description Its first entries that the other side does not have, the oldest first. */
            entries: components["schemas"]["EntryItem"][];
        };
        /** @description Output of `session::branches`. */
        BranchesResult: {
            /** @description Where the active path ends; not at the end of a branch when the leaf was moved back. */
            active_leaf?: string | null;
            /** @description The branches, the most recently active first. */
            branches: components["schemas"]["Branch"][];
            /** @description For the next page; absent on the last. A branch that goes on meanwhile is at the front of a new list. */
            next_cursor?: string | null;
        };
        Checkpoints: {
            /** @description Sessions whose newest checkpoint has all their records. */
            checkpointed: number;
            /** @description Sessions with records after their newest checkpoint: opening one reads those. */
            dirty: number;
            /** @description When the files were measured, milliseconds since the epoch. */
            measured_at: number;
            /** @description Sessions whose manifest cannot be read. */
            unreadable: number;
        };
        /** @description Output of `session::clear-active-leaf`. */
        ClearActiveLeafResult: {
            /** @description Whether the active path had an end before. */
            moved: boolean;
        };
        ClientRange: {
            /** @description The newest version that is known to work. */
            max: string;
            /** @description The oldest version of the client libraries that is served. */
            min: string;
        };
        /** @description Input of `session::compact`: exactly one of `summary` and `digest`. */
        CompactRequest: {
            /** @description Whether the summary is written by fixed rules, which need no model. Default false. */
            digest?: boolean | null;
            /** @description Compact only if the active leaf still is this entry (`""` for a session without entries). Labels do not count. */
            expected_leaf?: string | null;
            /** @description How much of the newest conversation stays as it is, in tokens. Default: the configured number (20,000). */
            keep_recent_tokens?: number | null;
            /** @description Whether to compact only if the context exceeds the window of its model, less the reserve. Default false. */
            only_if_due?: boolean | null;
            /** @description The summary of what is replaced. The files that were read and changed are added to it. */
            summary?: string | null;
        };
        /** @description What a compaction does, or would do. Output of `session::plan-compaction` and `session::compact`. */
        CompactionResult: {
            /** @description The active leaf now: what `expected_leaf` takes. */
            active_leaf?: string | null;
            /** @description The conversation that the summary replaces, if it was asked for. */
            conversation?: string | null;
            /** @description The entry that was appended. A recorded session has blocks over its `loops` instead. */
            entry_id?: string | null;
            /** @description The files that were read and changed in what the summary replaces. */
            files: components["schemas"]["Files"];
            /** @description The first entry that stays as it is. */
            first_kept_entry_id?: string | null;
            /** @description How many entries stay as they are. */
            kept_entries: number;
            /** @description Tokens of what stays, estimated. */
            kept_tokens: number;
            /** @description In a recorded session: the loops with turns that the summary replaces, the oldest first. */
            loops: string[];
            /** @description The same as a sentence. */
            nothing_to_do?: string | null;
            /** @description Why there is nothing to compact. Then nothing is written, and what follows `tokens_after` is empty. */
            reason?: components["schemas"]["NothingToCompact"] | null;
            /** @description The session. */
            session_id: string;
            /** @description Whether the summary replaces the beginning of a turn whose end stays. */
            split_turn: boolean;
            /** @description How many entries the summary replaces. */
            summarised_entries: number;
            /** @description In a recorded session: how many turns the summary replaces. */
            summarised_turns: number;
            /** @description The summary. In a plan it is the digest. */
            summary?: string | null;
            /** @description Tokens of the context with this summary, estimated. */
            tokens_after?: number | null;
            /** @description Tokens of the context before, as the newest answer reported them; estimated after that answer, or without one. Absent if they were not needed to answer. */
            tokens_before?: number | null;
            /** @description The window of the session's model in tokens; absent if it is not known. */
            window?: number | null;
            /** @description Whether it was written. */
            written: boolean;
        };
        /** @description Output of `session::compare`. */
        CompareResult: {
            /** @description The last entry that both paths have; absent when they have none. */
            common_entry_id?: string | null;
            /** @description What only the left path has. */
            left: components["schemas"]["BranchSide"];
            /** @description What only the right path has. */
            right: components["schemas"]["BranchSide"];
        };
        /** @description Another writer appended meanwhile. */
        ConflictWireError: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            code: "conflict";
            /** @description Where the log ends now. */
            current: unknown;
        };
        /** @description The unit of content; a message's content is an ordered list of these. */
        ContentBlock: components["schemas"]["TextContentBlock"] | components["schemas"]["ImageContentBlock"] | components["schemas"]["ThinkingContentBlock"] | components["schemas"]["FunctionCallContentBlock"] | components["schemas"]["FunctionResultContentBlock"];
        /** @description One message of a context. */
        ContextItem: {
            /** @description The entry that the message comes from; for a summary, the compaction or branch summary entry. */
            entry_id: string;
            /** @description What a model would be sent. Of a message that still streams, `stop_reason` is absent until it finishes. */
            message: components["schemas"]["AgentMessage"];
        };
        /** @description Output of `session::context`. */
        ContextResult: {
            /** @description The same messages in the format that was asked for. */
            conversation?: components["schemas"]["FormattedConversation"] | null;
            /** @description How many tokens it is, estimated as characters / 4. */
            estimated_tokens: number;
            /** @description How many messages the budget left out. Where a long path is not read to its beginning, those that were not read are not counted. */
            left_out: number;
            /** @description The path with compactions and branch summaries applied, oldest first. */
            messages: components["schemas"]["ContextItem"][];
            /** @description How many tokens it is as the newest answer reported it, with estimates for what came after that answer. The estimate of all, if no answer reported it, or with `max_tokens`. */
            tokens: number;
            /** @description The window of the session's model in tokens; absent if it is not known. */
            window?: number | null;
        };
        /** @description Input of `session::create`. */
        CreateRequest: {
            /** @description Session description. Empty when omitted. */
            description?: string | null;
            /** @description App-defined metadata, kept with the session: what lists, events and scopes filter by. */
            metadata?: components["schemas"]["Metadata"] | null;
            /** @description Session title; `session::set-meta` may change it later. Empty when omitted. */
            title?: string | null;
        };
        /** @description Output of `session::create`. */
        CreateResult: {
            /** @description Its metadata record. */
            meta: components["schemas"]["SessionMeta"];
            /** @description The new session. */
            session_id: string;
        };
        /** @description A session exists (created, forked, ensured, brought back). */
        CreatedEvent: {
            /**
             * Format: int64
             * @description When it was created, milliseconds since epoch.
             */
            created_at: number;
            /** @description Its description. */
            description: string;
            /** @description The session that it was forked from. */
            forked_from?: string | null;
            /** @description The session. */
            session_id: string;
            /** @description Its status. */
            status: components["schemas"]["SessionStatus"];
            /** @description Its title. */
            title: string;
        };
        /** @description Anything else that belongs in the transcript: notices, marks, attachments. */
        CustomMessage: {
            /** @description What it says. */
            content: components["schemas"]["ContentBlock"][];
            /** @description The application's own word for what this is. */
            custom_type: string;
            /** @description Data beside the rendering. */
            details?: unknown;
            /** @description How to show it, in the application's words. */
            display?: string | null;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            role: "custom";
            /**
             * Format: int64
             * @description Milliseconds since the epoch, by the caller's clock.
             */
            timestamp: number;
        };
        /** @description Bookkeeping of a custom entry. */
        CustomPayload: {
            /** @description The application's word for what this is; names that start with `bough.` are ours. */
            custom_type: string;
            /**
             * @description The application's data.
             * @default null
             */
            data: unknown;
        };
        /** @description Output of `session::kv::delete`. */
        DeleteDocumentResult: {
            /** @description Whether it was there. */
            deleted: boolean;
        };
        /** @description Output of `session::delete`. */
        DeleteResult: {
            /** @description False when the session did not exist (no event fires). */
            deleted: boolean;
        };
        /** @description A session was deleted. */
        DeletedEvent: {
            /** @description The session. */
            session_id: string;
            /**
             * Format: int64
             * @description When it was deleted, milliseconds since epoch.
             */
            timestamp: number;
        };
        DeltaAcknowledgement: {
            error?: components["schemas"]["Problem"];
            /** @description The revision that is durable. */
            revision?: number;
            /** @description Why the message ended, on the line for its end. */
            stop_reason?: components["schemas"]["StopReason"];
        };
        /**
         * @description What kind of block a delta begins.
         *
         *     - `text`: What the model says.
         *     - `thinking`: What the model thinks.
         *     - `tool_arguments`: The arguments of a function that the model calls, as it writes them.
         * @enum {string}
         */
        DeltaBlock: "text" | "thinking" | "tool_arguments";
        DeltaLine: {
            /** @description The number of the block, from 0. */
            block?: number;
            finish?: components["schemas"]["FinishMessageRequest"];
            /** @description The call, where the line begins one. */
            function_call_id?: string;
            /** @description The function of the call, where the line begins one. */
            function_id?: string;
            kind?: components["schemas"]["DeltaBlock"];
            /** @description What is added to the block. */
            text?: string;
        };
        /** @description Output of `session::describe`; `null` when the session is unknown. */
        DescribeResult: {
            /** @description Where the active path ends, not counting labels: what `expected_leaf` is compared with. Absent in a session without entries, where `expected_leaf` is `""`. */
            active_leaf?: string | null;
            /** @description What else is known of it: tokens, cost, model and the like. */
            details: components["schemas"]["SessionDetails"];
            /** @description The session's metadata record. */
            meta: components["schemas"]["SessionMeta"];
            /** @description Names what the session says of itself; `session::patch` takes it as `expected_version`. Entries do not change it. */
            version: string;
        };
        /** @description What went wrong while a message streamed. */
        DetailedError: {
            /** @description The kind of failure, which says whether trying again may help. */
            kind?: components["schemas"]["ErrorKind"] | null;
            /** @description A message for people. */
            message: string;
        };
        /** @description A document. Output of `session::kv::get`; `null` when there is none. */
        Document: {
            /**
             * Format: int64
             * @description When it was first put, milliseconds since epoch.
             */
            created_at: number;
            /** @description The key. */
            key: string;
            /**
             * Format: int64
             * @description When it was put last, milliseconds since epoch.
             */
            updated_at: number;
            /** @description The value, byte for byte as it was put. Absent where only keys were asked for. */
            value?: unknown;
            /** @description Its version. */
            version: number;
        };
        /** @description One document that a batch takes away. */
        DocumentRemoval: {
            /** @description Take it away only if the document has this version. */
            expected_version?: number | null;
            /** @description The key within the scope. */
            key: string;
        };
        /** @description Input of `session::ensure`. */
        EnsureRequest: {
            /** @description Description, applied only when the session is created. */
            description?: string | null;
            /** @description Metadata, applied only when the session is created. */
            metadata?: components["schemas"]["Metadata"] | null;
            /** @description Title, applied only when the session is created. */
            title?: string | null;
        };
        /** @description Output of `session::ensure`. */
        EnsureResult: {
            /** @description True when this call created the session. */
            created: boolean;
            /** @description Its metadata record. */
            meta: components["schemas"]["SessionMeta"];
            /** @description The session that was asked for. */
            session_id: string;
        };
        /** @description Output of `session::entries`. */
        EntriesResult: {
            /** @description One page. It may be empty although more pages remain. */
            entries: components["schemas"]["EntryItem"][];
            /** @description Present when more pages remain. */
            next_cursor?: string | null;
        };
        /** @description An entry with its place in the tree: one of `message`, `messages` and `custom`. */
        EntryItem: {
            /** @description The document, when it is no message. */
            custom?: components["schemas"]["OpaqueBody"] | null;
            /** @description The entry. */
            entry_id: string;
            /** @description What the format could not carry. */
            losses?: components["schemas"]["Loss"][];
            /** @description What it says, when it is a message: the very bytes in the format that it came in, mapped in others. Of a message that still streams, `stop_reason` is absent until it finishes. */
            message?: components["schemas"]["MessageInFormat"];
            /** @description The same, where the format says it in several messages. */
            messages?: unknown[] | null;
            /** @description The writer's own correlation. */
            origin?: components["schemas"]["JsonObject"] | null;
            /** @description Its parent; `null` at a root. */
            parent_id?: string | null;
            /** @description How often its content was changed since. */
            revision: number;
            /** @description On a path: the messages that follow the same message, itself among them, the oldest first. Labels and other bookkeeping between do not count. Absent when it is the only one. */
            siblings?: string[];
            /**
             * Format: int64
             * @description When it was made, milliseconds since epoch.
             */
            timestamp: number;
        };
        /** @description There is no such entry. */
        EntryNotFoundWireError: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            code: "entry_not_found";
            /** @description The entry. */
            entry: string;
        };
        /**
         * @description The order of entries: as they were added, or the newest first.
         *
         *     - `oldest`: As they were added.
         *     - `newest`: The newest first.
         * @enum {string}
         */
        EntryOrder: "oldest" | "newest";
        /** @description One entry. */
        EntryRawRead: {
            /** @description The entry. */
            entry_id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            op: "entry";
        };
        /** @description Output of `session::entry`; `null` when the session or entry is unknown. */
        EntryResult: {
            /** @description The entry. */
            entry: components["schemas"]["EntryItem"];
        };
        /**
         * @description What kind of failure a message ended in.
         *
         *     - `auth_expired`: The credentials are no longer good.
         *     - `rate_limited`: Too many requests.
         *     - `context_overflow`: The conversation no longer fits the model.
         *     - `transient`: Trying again may help.
         *     - `permanent`: Trying again will not help.
         * @enum {string}
         */
        ErrorKind: "auth_expired" | "rate_limited" | "context_overflow" | "transient" | "permanent";
        /**
         * @description The types of events.
         *
         *     - `session::created`: A session exists (created, ensured, forked or brought back).
         *     - `session::message-added`: An entry was appended to a session.
         *     - `session::message-updated`: A message's content changed (for example while it streams).
         *     - `session::status-changed`: A session's status changed (idle, working, done, error).
         *     - `session::meta-updated`: A session's title, description or metadata changed.
         *     - `session::deleted`: A session and its entries were removed.
         *     - `session::leaf-moved`: The active path of a session ends at another entry.
         *     - `session::archived`: A session was archived, or taken back.
         *     - `session::task-changed`: A session's task was named.
         *     - `session::label-changed`: An entry was named, or lost its name.
         *     - `session::message-removed`: An entry was hidden: no read shows it any more.
         *     - `session::loop-changed`: Something happened in a loop of an agent.
         * @enum {string}
         */
        EventKind: "session::created" | "session::message-added" | "session::message-updated" | "session::status-changed" | "session::meta-updated" | "session::deleted" | "session::leaf-moved" | "session::archived" | "session::task-changed" | "session::label-changed" | "session::message-removed" | "session::loop-changed";
        /** @description The session exists already. */
        ExistsWireError: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            code: "exists";
            /** @description The session. */
            session: string;
        };
        /** @description The store failed. */
        FailedWireError: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            code: "failed";
            /** @description What happened, without places on the disk. */
            reason: string;
        };
        /** @description What is wrong with one part of a request. */
        FieldProblem: {
            /** @description What is wrong with it. */
            detail: string;
            /** @description The part, as a JSON pointer into the body. */
            path: string;
        };
        /** @description The files that a conversation read and changed. A file that was changed is not among the read ones. */
        Files: {
            /** @description Written or edited, sorted. */
            modified: string[];
            /** @description Read and not changed, sorted. */
            read: string[];
        };
        /** @description Input of `session::finish-message`: the last words about a message that was begun with `stream`. */
        FinishMessageRequest: {
            /** @description What went wrong. */
            error?: components["schemas"]["StreamError"] | null;
            /** @description The model, when it was not known at the beginning. */
            model?: string | null;
            /** @description The provider's own word for it. */
            native_stop_reason?: string | null;
            /** @description Who served the model; with `model` only. */
            provider?: string | null;
            /** @description Why the model stopped. Default `end`, or `error` when there is an `error`. */
            stop_reason?: components["schemas"]["StopReason"] | null;
            /**
             * @description Tokens and money. They are counted from here on.
             * @default null
             */
            usage: components["schemas"]["Usage"] | null;
            /** @description Notices that did not stop the message. */
            warnings?: string[] | null;
        };
        /** @description Output of `session::finish-message`. */
        FinishMessageResult: {
            /** @description The entry's last revision as a stream. */
            revision: number;
            /** @description Why the model stopped, as the message says now. */
            stop_reason: components["schemas"]["StopReason"];
        };
        /** @description Input of `session::fork`. */
        ForkRequest: {
            /** @description The path from the root to this entry is copied, and is the new session's active path. Default: the active leaf. */
            entry_id?: string | null;
            /** @description Whether the copies have the ids of their originals. Default false: fresh ids. */
            keep_ids?: boolean | null;
            /** @description Id of the new session; one that is in use is refused. Default: a fresh one. */
            new_session_id?: string | null;
            /** @description Title of the new session (default: the source's title). */
            title?: string | null;
            /** @description Whether to copy every branch; `entry_id` then says only where the active path ends. Default false. */
            whole?: boolean | null;
        };
        /** @description Output of `session::fork`. */
        ForkResult: {
            /** @description Its metadata record, with `forked_from` set. */
            meta: components["schemas"]["SessionMeta"];
            /** @description The new session. */
            session_id: string;
        };
        /**
         * @description A format of messages.
         *
         *     - `bough`: The canonical message.
         *     - `anthropic`: The Anthropic Messages API.
         *     - `openai-chat`: OpenAI's Chat Completions API.
         *     - `openai-responses`: OpenAI's Responses API.
         *     - `gemini`: The Gemini API.
         *     - `ai-sdk`: `UIMessage`s of the AI SDK.
         *     - `pi`: pi session files.
         *     - `phi`: phi sessions.
         * @enum {string}
         */
        Format: "bough" | "anthropic" | "openai-chat" | "openai-responses" | "gemini" | "ai-sdk" | "pi" | "phi";
        /** @description A conversation as the API of a format takes it. */
        FormattedConversation: {
            /** @description What the format could not carry. */
            losses?: components["schemas"]["Loss"][];
            /** @description The messages, the oldest first. */
            messages: unknown[];
            /** @description What instructs the model, for the formats that take it beside the messages. */
            system?: unknown;
        };
        /** @description The disk is full. */
        FullWireError: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            code: "full";
        };
        /** @description A call that the model wants made. */
        FunctionCallContentBlock: {
            /**
             * @description The arguments as the model made them.
             * @default null
             */
            arguments: unknown;
            /** @description The function to call. */
            function_id: string;
            /** @description Names this call; the result repeats it. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "function_call";
        };
        /** @description The answer to a call, inside a message. */
        FunctionResultContentBlock: {
            /** @description The answer. */
            content: components["schemas"]["ContentBlock"][];
            /** @description The call that this answers. */
            function_call_id: string;
            /** @description Whether the call failed. */
            is_error?: boolean | null;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "function_result";
        };
        /** @description What a function call gave back. */
        FunctionResultMessage: {
            /** @description The result as the model sees it. */
            content: components["schemas"]["ContentBlock"][];
            /**
             * @description The result as data, beside its rendering.
             * @default null
             */
            details: unknown;
            /** @description The id of the call that this answers. */
            function_call_id: string;
            /** @description The function that was called. */
            function_id: string;
            /**
             * @description Whether the call failed.
             * @default false
             */
            is_error: boolean;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            role: "function_result";
            /**
             * Format: int64
             * @description Milliseconds since the epoch, by the caller's clock.
             */
            timestamp: number;
        };
        Health: {
            /** @constant */
            status: "ok";
        };
        HealthDetails: {
            config: components["schemas"]["ReloadStatus"];
            /** @description Whether the server is about to end. */
            draining: boolean;
            limits: components["schemas"]["LimitsConfig"];
            now: components["schemas"]["ServerActivity"] | null;
            search: components["schemas"]["IndexStatus"];
            since_start: components["schemas"]["ServerCounts"] | null;
            /** @enum {string} */
            status: "ready" | "not ready";
            store: components["schemas"]["StoreHealth"];
            /** @description How long it runs, in milliseconds. */
            uptime_ms: number;
            verification: components["schemas"]["Verification"] | null;
            /** @description The version of the program. */
            version: string;
        };
        /** @description Input of `session::hide-entries`. */
        HideEntriesRequest: {
            /** @description The entries to hide, all or none. Those that are hidden already are passed over. */
            entry_ids: string[];
        };
        /** @description Output of `session::hide-entries`. */
        HideEntriesResult: {
            /** @description How many entries were hidden now. */
            hidden: number;
        };
        /** @description A picture. */
        ImageContentBlock: {
            /** @description The bytes in base64. */
            data: string;
            /** @description MIME type, such as `image/png`. */
            mime: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "image";
        };
        /** @description How far a search index is behind what is stored. */
        IndexStatus: {
            /** @description Changes of sessions that it has not seen. Always 0 for a caller who does not see every session. */
            behind_changes: number;
            /** @description Sessions of which it knows that they have come further. Always 0 for a caller who does not see every session. */
            behind_sessions: number;
            /**
             * @description Documents added since it was built, which grow while it catches up. Always 0 for a caller who does not see every session.
             * @default 0
             */
            indexed_documents: number;
            /** @description Whether everything that was stored when the search began is in it. */
            is_complete: boolean;
            /**
             * @description Whether another process updates it, so that this one can only wait.
             * @default false
             */
            is_elsewhere: boolean;
        };
        /** @description The cursor is not one of ours. */
        InvalidCursorWireError: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            code: "invalid_cursor";
        };
        /** @description The request makes no sense, or is too large. */
        InvalidWireError: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            code: "invalid";
            /** @description What is wrong. */
            what: string;
        };
        /** @description Any JSON object. */
        JsonObject: {
            [key: string]: unknown;
        };
        /** @description An entry was named, or lost its name. */
        LabelChangedEvent: {
            /** @description The named entry. */
            entry_id: string;
            /** @description Its name now. */
            label?: string | null;
            /** @description The session. */
            session_id: string;
            /**
             * Format: int64
             * @description When it changed, milliseconds since epoch.
             */
            timestamp: number;
        };
        /** @description An earlier write failed. */
        LatchedWireError: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            code: "latched";
            /** @description What happened. */
            reason: string;
        };
        /** @description The active leaf moved without an append. */
        LeafMovedEvent: {
            /** @description The active leaf now; `null` before the first entry. */
            entry_id?: string | null;
            /** @description The session. */
            session_id: string;
            /**
             * Format: int64
             * @description When it moved, milliseconds since epoch.
             */
            timestamp: number;
        };
        /** @description Bounds of the server. */
        LimitsConfig: {
            /**
             * @description Largest body of a request, in bytes.
             * @default 67108864
             */
            body_bytes: number;
            /**
             * @description Largest message on the bus, in bytes.
             * @default 67108864
             */
            bus_message_bytes: number;
            /**
             * @description Most open connections of each listener.
             * @default 4096
             */
            connections: number;
            /**
             * @description How long the headers of a request may take, and a connection may be idle.
             * @default 30s
             */
            header_timeout: string;
            /**
             * @description How often a quiet stream shows that it lives.
             * @default 15s
             */
            heartbeat: string;
            /**
             * @description How long a request may take.
             * @default 1m
             */
            request_timeout: string;
            /**
             * @description Most requests that are worked on at once.
             * @default 1024
             */
            requests: number;
            /**
             * @description Most bytes of large events that the live streams of one token hold for their readers.
             * @default 33554432
             */
            stream_bytes_per_token: number;
            /**
             * @description Most live streams at once.
             * @default 2048
             */
            streams: number;
            /**
             * @description How long a peer may take nothing before it is disconnected.
             * @default 30s
             */
            write_stall_timeout: string;
        };
        /** @description Output of `session::kv::list`. */
        ListDocumentsResult: {
            /** @description One page, in the order of the keys. */
            documents: components["schemas"]["Document"][];
            /** @description Present when more pages remain. */
            next_cursor?: string | null;
        };
        /**
         * @description The order of a list.
         *
         *     - `created_asc`: The first made first.
         *     - `created_desc`: The last made first.
         *     - `updated_desc`: The last changed first.
         * @enum {string}
         */
        ListOrder: "created_asc" | "created_desc" | "updated_desc";
        /** @description Output of `session::list-trash`. */
        ListTrashResult: {
            /** @description Present when more pages remain. */
            next_cursor?: string | null;
            /** @description One page, most recently deleted first. */
            sessions: components["schemas"]["TrashItem"][];
        };
        /** @description Another process writes here. */
        LockedWireError: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            code: "locked";
            /** @description What it says of itself. */
            holder: string;
        };
        Login: {
            /** @description When the cookie ends, milliseconds since the epoch. */
            expires_at: number | null;
            /** @description What the caller may do. */
            rights: string[];
            /** @description The token; `null` where none is needed and no cookie is set. */
            token_id: string | null;
        };
        /** @description Output of `session::loop-chain`. */
        LoopChainResult: {
            /** @description The loops from the root to the asked one. Of a parallel group only the chosen loop is among them. */
            loop_ids: string[];
        };
        /** @description Something happened in a loop of an agent, in the recorder's words. */
        LoopChangedEvent: {
            /** @description The entry that holds the message which the event speaks of. */
            entry_id?: string | null;
            /** @description The event. */
            event: unknown;
            /** @description The loop. */
            loop_id: string;
            /** @description The session. */
            session_id: string;
            /**
             * Format: int64
             * @description When it happened, milliseconds since epoch.
             */
            timestamp: number;
        };
        /** @description What stands for messages of a loop in a compacted context. The messages themselves stay. */
        LoopCompaction: {
            /**
             * Format: int64
             * @description When it was made, in milliseconds since the epoch.
             */
            created_at: number;
            /** @description How many messages of the loop it stands for. */
            hidden_messages: number;
            /** @description How many messages of the loop come before those. */
            kept_before: number;
            /** @description The text that stands for them. */
            summary: string;
        };
        /**
         * @description How a loop relates to the one before it.
         *
         *     - `initial`: It begins something.
         *     - `default`: It goes on.
         *     - `rerun`: It tries again.
         *     - `branch`: It tries something else.
         *     - `compaction`: It only compacts the context.
         * @enum {string}
         */
        LoopContinuation: "initial" | "default" | "rerun" | "branch" | "compaction";
        /** @description A group of loops that ran side by side. */
        LoopGroup: {
            /** @description What choosing cost. */
            evaluation_usage: components["schemas"]["LoopUsage"];
            /** @description All loops of the group, in the order of their configurations. */
            loop_ids: string[];
            /** @description The loop that was chosen; absent until one is. */
            winner?: string | null;
        };
        /** @description Output of `session::loop-groups`. */
        LoopGroupsResult: {
            /** @description The groups of parallel loops, each once, with the winner of each. */
            groups: components["schemas"]["LoopGroup"][];
        };
        /** @description A sub-agent that a tool of a loop ran. */
        LoopSpawn: {
            /** @description The sub-agent's loop. */
            loop_id: string;
            /** @description The sub-agent's session; empty while that is not known. */
            session_id: string;
            /** @description The call of the tool; empty while that is not known. */
            tool_call_id: string;
            /** @description The tool; empty while that is not known. */
            tool_name: string;
        };
        /**
         * @description Where a loop stands.
         *
         *     - `pending`: Announced with its group, not started.
         *     - `running`: Started.
         *     - `completed`: Ended.
         *     - `rejected`: Its input was refused.
         *     - `aborted`: Broken off before it ended.
         * @enum {string}
         */
        LoopState: "pending" | "running" | "completed" | "rejected" | "aborted";
        /** @description One loop of a recorded session. */
        LoopSummary: {
            /** @description The agent that ran it. */
            agent_id: string;
            /** @description The loops of this session that go on from it. */
            children_loop_ids: string[];
            /** @description That summary, and what it hides. */
            compaction?: components["schemas"]["LoopCompaction"] | null;
            /** @description How it relates to that loop. */
            continuation: components["schemas"]["LoopContinuation"];
            /**
             * Format: int64
             * @description When it ended.
             */
            ended_at?: number | null;
            /** @description The group that it ran in. */
            group?: components["schemas"]["LoopGroup"] | null;
            /** @description Whether a summary stands for its messages in a compacted context. */
            is_compacted: boolean;
            /** @description Names the loop. */
            loop_id: string;
            /** @description How many messages it made. */
            messages: number;
            /** @description The model that it ran with. */
            model?: string | null;
            /** @description The loop before it, of this session or of another. */
            parent_loop_id?: string | null;
            /** @description Why its input was refused. */
            rejection?: string | null;
            /** @description The sub-agents that its tools ran. */
            spawned: components["schemas"]["LoopSpawn"][];
            /**
             * Format: int64
             * @description When it started, in milliseconds since the epoch.
             */
            started_at: number;
            /** @description Where it stands. */
            status: components["schemas"]["LoopState"];
            /** @description The mark of a rerun or a branch. */
            tag?: string | null;
            /** @description Its turns. */
            turns: components["schemas"]["TurnSummary"][];
            /** @description What it cost. */
            usage: components["schemas"]["LoopUsage"];
        };
        /** @description Tokens, as the events report them. */
        LoopUsage: {
            /** @description Tokens read from a cache. */
            cache_read: number;
            /** @description Tokens written to a cache. */
            cache_write: number;
            /** @description Tokens read. */
            input: number;
            /** @description Tokens written. */
            output: number;
            /** @description Tokens thought. */
            reasoning: number;
            /** @description All together, as the provider counts. */
            total_tokens: number;
        };
        /** @description Output of `session::loops`. */
        LoopsResult: {
            /** @description One page, in the order in which the loops started. Empty for a session that was not recorded. */
            loops: components["schemas"]["LoopSummary"][];
            /** @description Present when more pages remain. */
            next_cursor?: string | null;
        };
        /** @description Something that a mapping could not carry. */
        Loss: {
            /** @description The entry whose message it is about, where several are mapped. */
            entry_id?: string | null;
            /** @description What, as a JSON pointer into the canonical message. */
            pointer: string;
            /** @description Why. */
            reason: components["schemas"]["LossReason"];
        };
        /**
         * @description Why a mapping could not carry something.
         *
         *     - `no_place`: The format has no member for it.
         *     - `changed`: The format expresses it in another way, which does not carry all of it.
         *     - `not_input`: The format has it in replies, and takes it in no request.
         * @enum {string}
         */
        LossReason: "no_place" | "changed" | "not_input";
        /** @description An entry was appended: exactly one of `message` and `custom`. */
        MessageAddedEvent: {
            /** @description What it keeps, when it is a custom entry. */
            custom?: components["schemas"]["CustomPayload"] | null;
            /** @description The new entry. */
            entry_id: string;
            /** @description What it says, when it is a message. */
            message?: components["schemas"]["AgentMessage"] | null;
            /** @description The writer's correlation. */
            origin?: components["schemas"]["JsonObject"] | null;
            /** @description Its parent; `null` at the root. */
            parent_id?: string | null;
            /** @description The session. */
            session_id: string;
            /**
             * Format: int64
             * @description When it was appended, milliseconds since epoch.
             */
            timestamp: number;
        };
        MessageDelta: {
            /** @description The number of the block, from 0. */
            block: number;
            /** @description The message. */
            entry_id: string;
            /** @description The call, where the delta begins one. */
            function_call_id?: string;
            /** @description The function of the call, where the delta begins one. */
            function_id?: string;
            /**
             * @description What the block holds.
             * @enum {string}
             */
            kind: "text" | "thinking" | "tool_arguments";
            /** @description The revision that the message has then. */
            revision: number;
            /** @description The session; only among the events of all sessions. */
            session_id?: string;
            /** @description What is added to the block. */
            text: string;
        };
        MessageFinished: {
            /** @description Whether it was given up before its end. */
            aborted?: boolean;
            /** @description What it cost, in dollars. */
            cost?: number;
            /** @description The message. */
            entry_id: string;
            /** @description What kind of error it is. */
            error_kind?: components["schemas"]["ErrorKind"];
            /** @description What went wrong. */
            error_message?: string;
            /** @description The model that wrote it. */
            model?: string;
            /** @description The provider's own word for it. */
            native_stop_reason?: string;
            /** @description Who served the model. */
            provider?: string;
            /** @description The revision that the message has then. */
            revision: number;
            /** @description The session; only among the events of all sessions. */
            session_id?: string;
            /** @description Why it ended. */
            stop_reason?: components["schemas"]["StopReason"];
            usage?: components["schemas"]["Usage"];
            /** @description Notices that did not stop it. */
            warnings?: string[];
        };
        /** @description A message in the format that `format` names; without it, an `AgentMessage`. */
        MessageInFormat: {
            [key: string]: unknown;
        };
        /** @description An entry was hidden: no read shows it any more. */
        MessageRemovedEvent: {
            /** @description The hidden entry. Entries that follow it stay. */
            entry_id: string;
            /** @description The session. */
            session_id: string;
            /**
             * Format: int64
             * @description When it was hidden, milliseconds since epoch.
             */
            timestamp: number;
        };
        MessageSnapshot: {
            /** @description The message. */
            entry_id: string;
            message: components["schemas"]["AgentMessage"];
            /** @description Its parent. */
            parent_id: string | null;
            /** @description The revision that the message has then. */
            revision: number;
            /** @description The session; only among the events of all sessions. */
            session_id?: string;
        };
        MessageStarted: {
            /** @description The message. */
            entry_id: string;
            message: components["schemas"]["AgentMessage"];
            /** @description Its parent. */
            parent_id: string | null;
            /** @description The revision that the message has then. */
            revision: number;
            /** @description The session; only among the events of all sessions. */
            session_id?: string;
        };
        /** @description What a batch says about its session. */
        MetaPatch: {
            /** @description New description; omit to keep the current one. */
            description?: string | null;
            /** @description Members to merge into the metadata (RFC 7396): `null` removes a member. */
            metadata?: components["schemas"]["Metadata"] | null;
            /** @description New title; omit to keep the current one. */
            title?: string | null;
        };
        /** @description A session's title, description or metadata changed. */
        MetaUpdatedEvent: {
            /** @description The description now. */
            description: string;
            /** @description The metadata now. */
            metadata?: components["schemas"]["Metadata"] | null;
            /** @description The session. */
            session_id: string;
            /**
             * Format: int64
             * @description When it changed, milliseconds since epoch.
             */
            timestamp: number;
            /** @description The title now. */
            title: string;
        };
        /** @description What applications note about a session; lists can be filtered by it. */
        Metadata: {
            [key: string]: unknown;
        };
        /** @description A model and who serves it. */
        ModelName: {
            /** @description What it is called. */
            model: string;
            /** @description Who serves it. */
            provider: string;
        };
        /** @description One document of a batch. */
        NewDocument: {
            /** @description Put it only if the document has this version; 0: only if there is none. */
            expected_version?: number | null;
            /** @description The key within the scope. */
            key: string;
            /** @description Any JSON value. It is kept byte for byte. */
            value: unknown;
        };
        /** @description One entry of a batch: exactly one of `message` and `custom`. */
        NewEntry: {
            /** @description A document of the application, kept byte for byte. */
            custom?: components["schemas"]["OpaqueBody"] | null;
            /** @description Id chosen by the caller. An entry that is there already with the same content is passed over. */
            entry_id?: string | null;
            /** @description The format of the message. Default: what the session's metadata has as `message_format`, or else `bough`. */
            format?: components["schemas"]["Format"] | null;
            /** @description A message in that format. It is kept as it came. */
            message?: components["schemas"]["MessageInFormat"] | null;
            /** @description Opaque correlation, kept with the entry and shown on its events. */
            origin?: components["schemas"]["JsonObject"] | null;
            /** @description The parent, when it is not the entry before it in the batch: any entry of the session, or an earlier one of the batch; `null` begins a new tree. */
            parent_id?: string | null;
        };
        /** @description There is no such session. */
        NotFoundWireError: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            code: "not_found";
            /** @description The session. */
            session: string;
        };
        /** @description The entry is not on the path. */
        NotOnPathWireError: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            code: "not_on_path";
            /** @description The entry. */
            entry: string;
        };
        /**
         * @description Why there is nothing to compact.
         *
         *     - `empty`: The path has no messages.
         *     - `just_compacted`: The last entry is a compaction.
         *     - `all_is_recent`: All of it fits into what would be kept.
         *     - `switched_off`: It was asked for only if it is due, and the configuration disables that.
         *     - `no_window`: It was asked for only if it is due, and there is no window to compare with.
         *     - `fits`: It was asked for only if it is due, and the context still fits.
         * @enum {string}
         */
        NothingToCompact: "empty" | "just_compacted" | "all_is_recent" | "switched_off" | "no_window" | "fits";
        /** @description An application's document, as it came. */
        OpaqueBody: {
            /** @description The application's word for what this is. */
            custom_type: string;
            /**
             * @description The document: any JSON.
             * @default null
             */
            data: unknown;
        };
        /** @description Input of `session::patch`. */
        PatchRequest: {
            /** @description New description; omit to keep the current one. `null` removes it: the description is empty then. */
            description?: string | null;
            /** @description Change only if the session still has this version; otherwise `session/version_conflict`. */
            expected_version?: string | null;
            /** @description Members to merge into the metadata (RFC 7396): `null` removes a member, and in place of the object all of them. */
            metadata?: components["schemas"]["Metadata"] | null;
            /** @description New title; omit to keep the current one. `null` removes it: the title is empty then. */
            title?: string | null;
        };
        /** @description Output of `session::patch`. */
        PatchResult: {
            /** @description The metadata record after the change. */
            meta: components["schemas"]["SessionMeta"];
            /** @description Its version after the change. */
            version: string;
        };
        /** @description A part of a path. */
        PathRawRead: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            op: "path";
            /** @description Which part; its limit is clamped to the configured page size. */
            query: unknown;
        };
        /** @description Output of `session::path` (oldest first) and `session::path-tail` (newest first). */
        PathResult: {
            /** @description One page. */
            messages: components["schemas"]["EntryItem"][];
            /** @description Present when more pages remain. */
            next_cursor?: string | null;
        };
        /** @description What went wrong (RFC 9457). */
        Problem: {
            /** @description A stable name for programs. */
            code: string;
            /** @description What programs may want beside the text. */
            data?: unknown;
            /** @description What happened, for people. */
            detail: string;
            /** @description What is wrong with each part of the request. */
            errors?: components["schemas"]["FieldProblem"][];
            /** @description The next step. */
            hint: string;
            /** @description Who holds a session that is locked. */
            holder?: string;
            status: number;
            /** @description What the status means. */
            title: string;
            /** @description Where the code is described, on this server. */
            type: string;
        };
        /** @description Output of `session::purge`. */
        PurgeResult: {
            /** @description False when no such session is in the trash. */
            purged: boolean;
        };
        /** @description Input of `session::kv::put`. */
        PutDocumentRequest: {
            /** @description Put it only if the document has this version; 0: only if there is none. Otherwise `session/document_conflict`. */
            expected_version?: number | null;
            /** @description Any JSON value. It is kept byte for byte. */
            value: unknown;
        };
        /** @description A document that was put. Output of `session::kv::put`. */
        PutDocumentResult: {
            /** @description The key. */
            key: string;
            /** @description Its version now. Each version is larger than all before it in the scope. */
            version: number;
        };
        /** @description What can be read of one session as its store keeps it: the reads of the store protocol that are about one session. */
        RawRead: components["schemas"]["StateRawRead"] | components["schemas"]["EntryRawRead"] | components["schemas"]["PathRawRead"] | components["schemas"]["RecordsRawRead"] | components["schemas"]["BranchHeadsRawRead"];
        Readiness: {
            /** @description How the last reload of the configuration ended. */
            config: string;
            /** @description Whether the server is about to end. */
            draining: boolean;
            /** @description Reloads that were refused since the start. */
            rejected_reloads: number;
            /** @description Sessions that were opened again after a failure. */
            reopened_sessions: number;
            /** @enum {string} */
            status: "ready" | "not ready";
            /** @description The adapter. */
            store: string;
            /** @description Whether the store answers. */
            store_reachable: boolean;
        };
        /** @description Input of `session::record`: the next events of a recording. */
        RecordRequest: {
            /** @description How many events of the recording come before the first of these. Events that the recording has already are passed over, so a request can be repeated. Without it these are the next ones. After the server was restarted, events of loops that began before are refused: send those after `resume_after`, or all of them with 0. */
            after?: number | null;
            /** @description The events, in the order of the agent. */
            events: components["schemas"]["RecorderEvent"][];
            /** @description Whether the recording ends here: loops that have not ended are then broken off. Default false. */
            finish?: boolean | null;
        };
        /** @description Output of `session::record`. Everything up to `position` is durable. */
        RecordResult: {
            /** @description How many events of this request were stored before. */
            already_recorded: number;
            /** @description What was not as expected, in the order of the events; the first of them where there are many. */
            notices: components["schemas"]["RecordingNotice"][];
            /** @description How many notices were left out. */
            notices_left_out?: number;
            /** @description How many events the recording has. */
            position: number;
            /** @description The recording. */
            recording_id: string;
            /** @description Where to go on after the server was restarted: the events after this one are to be sent again. They belong to loops that have not ended, and none of them is stored twice. */
            resume_after: number;
            /** @description The sessions that the events of this request named. */
            sessions: string[];
        };
        /** @description An event of an agent, as the recorder of phi-core writes it. */
        RecorderEvent: {
            /** @description The name of the event, such as `AgentStart`. */
            type: string;
        } & {
            [key: string]: unknown;
        };
        /** @description Something unexpected about an event. */
        RecordingNotice: {
            /** @description The number of the event in its recording, from 1. */
            event: number;
            /** @description Whether the event is not recorded. */
            lost: boolean;
            /** @description What is unexpected. */
            notice: string;
        };
        /** @description Output of `session::recording`: where an open recording stands. */
        RecordingResult: {
            /** @description How many events are durable: the next request goes on after this. */
            position: number;
            /** @description The recording. */
            recording_id: string;
            /** @description The same, after a restart of the server. */
            resume_after: number;
        };
        /** @description Records after a position. */
        RecordsRawRead: {
            /** @description The position. */
            after: unknown;
            /** @description How many at most; clamped to the configured page size. */
            limit: number;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            op: "records";
        };
        /** @description Input of `session::reindex`. */
        ReindexRequest: Record<string, never>;
        /**
         * @description How the most recent reload of the configuration ended.
         *
         *     - `applied`: What runs is what the configuration says.
         *     - `rejected`: The last configuration could not be built; what ran before still runs, and differs from it.
         * @enum {string}
         */
        ReloadOutcome: "applied" | "rejected";
        /** @description Output of `session::config-status`. `rejected_reloads > 0` means that some configuration was refused. */
        ReloadStatus: {
            /** @description Why the most recent rejected reload was refused. */
            last_error?: string | null;
            /** @description How the most recent reload ended. */
            last_outcome: components["schemas"]["ReloadOutcome"];
            /** @description Fields whose change was read and takes effect at the next start. */
            needs_restart?: string[];
            /** @description Rejected reloads since the start; never reset. */
            rejected_reloads: number;
        };
        /** @description Another writer changed the message meanwhile. */
        RevisionConflictWireError: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            code: "revision_conflict";
            /** @description Its revision. */
            current: number;
            /** @description The message. */
            entry: string;
        };
        /**
         * @description Who speaks in a message.
         *
         *     - `user`: The person.
         *     - `assistant`: The model.
         *     - `function_result`: A function.
         *     - `custom`: The application.
         * @enum {string}
         */
        Role: "user" | "assistant" | "function_result" | "custom";
        /** @description One entry, or one session, that a search found. */
        SearchHit: {
            /** @description What else is known of the session, when sessions were asked for. */
            details?: components["schemas"]["SessionDetails"] | null;
            /** @description The entry; absent when the session itself was found, by its title or what else it says of itself. */
            entry_id?: string | null;
            /** @description The session. */
            meta: components["schemas"]["SessionMeta"];
            /** @description Whether the entry is on the active path. */
            on_active_path?: boolean | null;
            /** @description The beginning of its first user message. */
            preview?: string | null;
            /** @description The revision, when an old one was asked for and found. */
            revision?: number | null;
            /** @description Who speaks in the entry, if it is a message. */
            role?: components["schemas"]["Role"] | null;
            /**
             * Format: double
             * @description How well it fits; higher is better, and only hits of one search compare.
             */
            score?: number | null;
            /** @description The text that was found. */
            snippet?: components["schemas"]["SearchSnippet"] | null;
            /**
             * Format: int64
             * @description When the entry was made, milliseconds since the epoch.
             */
            timestamp?: number | null;
        };
        /** @description Output of `session::search`. */
        SearchResult: {
            /** @description What was found, the best first; newer ones and titles rank higher. Archived sessions are found too. */
            hits: components["schemas"]["SearchHit"][];
            /** @description How far the index is; absent when there is none, and only titles and the like were searched. */
            index?: components["schemas"]["IndexStatus"] | null;
            /** @description Present when more pages remain. */
            next_cursor?: string | null;
        };
        /** @description A line of text with the places that were found. */
        SearchSnippet: {
            /** @description Start and end of each place, in characters (Unicode code points) of the text. */
            highlights: [
                number,
                number
            ][];
            /** @description What the text is: text, thinking, call, result, error, summary, label, title, about or data. */
            kind: string;
            /** @description The text. */
            text: string;
        };
        /** @description The present activity of the server. */
        ServerActivity: {
            /** @description How many bus bindings. */
            bus_bindings: number;
            /** @description How many bus connections. */
            bus_connections: number;
            /** @description How many http connections. */
            http_connections: number;
            /** @description How many requests. */
            requests: number;
            /** @description How many subscribers. */
            subscribers: number;
        };
        /** @description What happened since the start. */
        ServerCounts: {
            /** @description How many events delivered. */
            events_delivered: number;
            /** @description How many events streamed. */
            events_streamed: number;
            /** @description How many gaps. */
            gaps: number;
            /** @description How many limited requests. */
            limited_requests: number;
            /** @description How many panics. */
            panics: number;
            /** @description How many refused requests. */
            refused_requests: number;
        };
        SessionArchived: {
            /** @description Where to go on after this event; its `id`. */
            cursor: string;
            payload: components["schemas"]["ArchivedEvent"];
            /** @description The number of the record in its session. */
            seq: number;
            /** @description The number of the step of a stream; 0 when it is not about a stream. */
            step: number;
            /** @constant */
            type: "session::archived";
        };
        SessionCreated: {
            /** @description Where to go on after this event; its `id`. */
            cursor: string;
            payload: components["schemas"]["CreatedEvent"];
            /** @description The number of the record in its session. */
            seq: number;
            /** @description The number of the step of a stream; 0 when it is not about a stream. */
            step: number;
            /** @constant */
            type: "session::created";
        };
        SessionDeleted: {
            /** @description Where to go on after this event; its `id`. */
            cursor: string;
            payload: components["schemas"]["DeletedEvent"];
            /** @description The number of the record in its session. */
            seq: number;
            /** @description The number of the step of a stream; 0 when it is not about a stream. */
            step: number;
            /** @constant */
            type: "session::deleted";
        };
        /** @description What we know of a session beyond its meta; kept apart, because the shape of the meta is published. */
        SessionDetails: {
            /**
             * @description Whether it was put away.
             * @default false
             */
            archived: boolean;
            /** @description How many tokens that model reads at most, where known. */
            context_window?: number | null;
            /** @description The part of it that was copied from the session that this one was forked from. A sum over sessions leaves it out, because it is counted there. */
            copied_usage?: components["schemas"]["UsageByModel"];
            /**
             * @description How many entries of any kind there are.
             * @default 0
             */
            entry_count: number;
            /** @description The model that spoke or was chosen last. */
            model?: components["schemas"]["ModelName"] | null;
            /** @description The name that a session-info entry gave it. */
            name?: string | null;
            /** @description The beginning of the first user message. */
            preview?: string | null;
            /** @description What its task is called. */
            task_name?: string | null;
            /** @description Where its task stands; absent while it has no loops. */
            task_status?: components["schemas"]["TaskStatus"] | null;
            /**
             * @description Tokens and money.
             * @default {
             *       "models": {},
             *       "total": {
             *         "cache_read": 0,
             *         "cache_write": 0,
             *         "cost_usd": 0,
             *         "input": 0,
             *         "messages": 0,
             *         "output": 0,
             *         "reasoning": 0
             *       }
             *     }
             */
            usage: components["schemas"]["UsageByModel"];
        };
        /** @description One session of a list. */
        SessionItem: {
            /**
             * Format: int64
             * @description Milliseconds since the epoch.
             */
            created_at: number;
            /** @description A longer description. */
            description: string;
            /** @description What else is known of it, when it was asked for. */
            details?: components["schemas"]["SessionDetails"] | null;
            /** @description The session that this one was forked from. */
            forked_from?: string | null;
            /** @description How many entries are messages. */
            message_count: number;
            /** @description The application's data; lists, feeds and scopes filter on it. */
            metadata?: components["schemas"]["Metadata"] | null;
            /** @description Names the session. */
            session_id: string;
            /** @description What it is doing. */
            status: components["schemas"]["SessionStatus"];
            /** @description Why it failed, while its status is `error`. */
            status_reason?: string | null;
            /** @description A short title. */
            title: string;
            /**
             * Format: int64
             * @description Milliseconds since the epoch.
             */
            updated_at: number;
        };
        SessionLabelChanged: {
            /** @description Where to go on after this event; its `id`. */
            cursor: string;
            payload: components["schemas"]["LabelChangedEvent"];
            /** @description The number of the record in its session. */
            seq: number;
            /** @description The number of the step of a stream; 0 when it is not about a stream. */
            step: number;
            /** @constant */
            type: "session::label-changed";
        };
        SessionLeafMoved: {
            /** @description Where to go on after this event; its `id`. */
            cursor: string;
            payload: components["schemas"]["LeafMovedEvent"];
            /** @description The number of the record in its session. */
            seq: number;
            /** @description The number of the step of a stream; 0 when it is not about a stream. */
            step: number;
            /** @constant */
            type: "session::leaf-moved";
        };
        SessionLoopChanged: {
            /** @description Where to go on after this event; its `id`. */
            cursor: string;
            payload: components["schemas"]["LoopChangedEvent"];
            /** @description The number of the record in its session. */
            seq: number;
            /** @description The number of the step of a stream; 0 when it is not about a stream. */
            step: number;
            /** @constant */
            type: "session::loop-changed";
        };
        SessionMessageAdded: {
            /** @description Where to go on after this event; its `id`. */
            cursor: string;
            payload: components["schemas"]["MessageAddedEvent"];
            /** @description The number of the record in its session. */
            seq: number;
            /** @description The number of the step of a stream; 0 when it is not about a stream. */
            step: number;
            /** @constant */
            type: "session::message-added";
        };
        SessionMessageRemoved: {
            /** @description Where to go on after this event; its `id`. */
            cursor: string;
            payload: components["schemas"]["MessageRemovedEvent"];
            /** @description The number of the record in its session. */
            seq: number;
            /** @description The number of the step of a stream; 0 when it is not about a stream. */
            step: number;
            /** @constant */
            type: "session::message-removed";
        };
        /** @description A session's own record, as the API shows it and the files hold it. */
        SessionMeta: {
            /**
             * Format: int64
             * @description Milliseconds since the epoch.
             */
            created_at: number;
            /** @description A longer description. */
            description: string;
            /** @description The session that this one was forked from. */
            forked_from?: string | null;
            /** @description How many entries are messages. */
            message_count: number;
            /** @description The application's data; lists, feeds and scopes filter on it. */
            metadata?: components["schemas"]["Metadata"] | null;
            /** @description Names the session. */
            session_id: string;
            /** @description What it is doing. */
            status: components["schemas"]["SessionStatus"];
            /** @description Why it failed, while its status is `error`. */
            status_reason?: string | null;
            /** @description A short title. */
            title: string;
            /**
             * Format: int64
             * @description Milliseconds since the epoch.
             */
            updated_at: number;
        };
        SessionMetaUpdated: {
            /** @description Where to go on after this event; its `id`. */
            cursor: string;
            payload: components["schemas"]["MetaUpdatedEvent"];
            /** @description The number of the record in its session. */
            seq: number;
            /** @description The number of the step of a stream; 0 when it is not about a stream. */
            step: number;
            /** @constant */
            type: "session::meta-updated";
        };
        /** @description A session as it is at one place of its feed, to be shown before what follows. */
        SessionSnapshot: {
            /** @description Where its active path ends, not counting labels: what `expected_leaf` is compared with. Absent in a session without entries, where `expected_leaf` is `""`. */
            active_leaf?: string | null;
            /** @description What is known beyond that. */
            details: components["schemas"]["SessionDetails"];
            /** @description The newest messages of the active path, oldest first, as the list of messages shows them but without siblings. */
            messages: components["schemas"]["EntryItem"][];
            /** @description Its metadata record. */
            meta: components["schemas"]["SessionMeta"];
            /** @description Whether older ones were left out; the list of messages has them. */
            more_messages: boolean;
        };
        /**
         * @description What a session is doing.
         *
         *     - `idle`: Nothing.
         *     - `working`: Something.
         *     - `done`: It finished.
         *     - `error`: It failed.
         * @enum {string}
         */
        SessionStatus: "idle" | "working" | "done" | "error";
        SessionStatusChanged: {
            /** @description Where to go on after this event; its `id`. */
            cursor: string;
            payload: components["schemas"]["StatusChangedEvent"];
            /** @description The number of the record in its session. */
            seq: number;
            /** @description The number of the step of a stream; 0 when it is not about a stream. */
            step: number;
            /** @constant */
            type: "session::status-changed";
        };
        SessionTaskChanged: {
            /** @description Where to go on after this event; its `id`. */
            cursor: string;
            payload: components["schemas"]["TaskChangedEvent"];
            /** @description The number of the record in its session. */
            seq: number;
            /** @description The number of the step of a stream; 0 when it is not about a stream. */
            step: number;
            /** @constant */
            type: "session::task-changed";
        };
        SessionsListed: {
            sessions: components["schemas"]["SessionMeta"][];
        };
        /** @description Output of `session::sessions`. */
        SessionsResult: {
            /** @description Present when more pages remain. */
            next_cursor?: string | null;
            /** @description One page. */
            sessions: components["schemas"]["SessionItem"][];
        };
        /** @description Input of `session::set-active-leaf`. */
        SetActiveLeafRequest: {
            /** @description Where the active path should end. Later appends without `parent_id` go on from here. */
            entry_id: string;
            /** @description Move only if the active leaf still is this entry (`""` for none); otherwise `session/leaf_conflict`. */
            expected_leaf?: string | null;
        };
        /** @description Output of `session::set-active-leaf`. */
        SetActiveLeafResult: {
            /** @description The active leaf now. */
            active_leaf: string;
        };
        /** @description Input of `session::set-label`. */
        SetLabelRequest: {
            /** @description The name; omit to take it away. */
            label?: string | null;
        };
        /** @description Output of `session::set-label`. */
        SetLabelResult: {
            /** @description The entry that was named. */
            entry_id: string;
            /** @description Its label now. */
            label?: string | null;
        };
        /** @description Input of `session::set-status`. */
        SetStatusRequest: {
            /** @description Short cause, kept on `error` and cleared by any other status. */
            reason?: string | null;
            /** @description Target status. */
            status: components["schemas"]["SessionStatus"];
        };
        /** @description Output of `session::set-status`. */
        SetStatusResult: {
            /** @description The status before the call. */
            previous_status: components["schemas"]["SessionStatus"];
            /** @description The status now. */
            status: components["schemas"]["SessionStatus"];
        };
        /** @description Input of `session::set-task`. */
        SetTaskRequest: {
            /** @description What the session works on; omit to clear it. */
            task?: string | null;
        };
        /** @description Output of `session::set-task`. */
        SetTaskResult: {
            /** @description The task's name now. */
            task?: string | null;
        };
        /** @description One sub-agent and where it comes from. */
        SpawnLink: {
            /** @description The sub-agent's first loop, where the parent names it. */
            child_loop_id?: string | null;
            /** @description The sub-agent's session. */
            child_session_id: string;
            /** @description That loop. */
            parent_loop_id: string;
            /** @description The session of the loop that spawned it. */
            parent_session_id: string;
            /** @description The call of the tool; empty while that is not known. */
            tool_call_id: string;
            /** @description The tool; empty while that is not known. */
            tool_name: string;
        };
        /** @description A session of a family. */
        SpawnedSession: {
            /** @description Its agent. */
            agent_id: string;
            /** @description How many loops it has. */
            loops: number;
            /** @description The session. */
            session_id: string;
            /** @description What its loops, and choosing among parallel ones, cost. */
            usage: components["schemas"]["LoopUsage"];
        };
        /** @description Output of `session::spawns`: the sessions that spawned each other, up and down from the asked one. */
        SpawnsResult: {
            /** @description Whether the family is larger than what is shown. */
            more: boolean;
            /** @description The sessions of the family that the caller may see, the asked one first. */
            sessions: components["schemas"]["SpawnedSession"][];
            /** @description Which loop spawned which session. */
            spawns: components["schemas"]["SpawnLink"][];
        };
        /** @description What is known of it. */
        StateRawRead: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            op: "state";
        };
        /** @description Output of `session::stats`. */
        StatsResult: {
            /** @description Whether there are more than `limit`. */
            more: boolean;
            /** @description The sums: the oldest day first where days are kept apart, then the largest cost. */
            rows: components["schemas"]["StatsRow"][];
            /** @description How many sessions there are with these metadata, whatever they used. */
            sessions: number;
        };
        /** @description One sum. What it is not kept apart by is absent. */
        StatsRow: {
            /** @description The agent that the sessions' metadata name. */
            agent?: string | null;
            /** @description The day. */
            day?: string | null;
            /** @description The model. */
            model?: string | null;
            /** @description How long models took, milliseconds. */
            model_time_ms: number;
            /** @description The directory that the sessions work in: their metadata `cwd` or `project`. */
            project?: string | null;
            /** @description The session. */
            session_id?: string | null;
            /** @description The metadata `tenant` of the sessions. */
            tenant?: string | null;
            /** @description The tool. */
            tool?: string | null;
            /** @description Results of tools. */
            tool_calls: number;
            /** @description Results of tools that say that they failed. */
            tool_errors: number;
            /** @description How long tools took, milliseconds. */
            tool_time_ms: number;
            /** @description Tokens and money. */
            usage: components["schemas"]["UsageTotals"];
        };
        /** @description A session's status changed. */
        StatusChangedEvent: {
            /** @description The status before. */
            previous_status: components["schemas"]["SessionStatus"];
            /** @description The session. */
            session_id: string;
            /** @description The status now. */
            status: components["schemas"]["SessionStatus"];
            /** @description Why, on `error`. */
            status_reason?: string | null;
            /**
             * Format: int64
             * @description When it changed, milliseconds since epoch.
             */
            timestamp: number;
        };
        /**
         * @description Why a model stopped.
         *
         *     - `end`: It was done.
         *     - `length`: It ran out of room.
         *     - `function_call`: It wants a function called.
         *     - `aborted`: Somebody stopped it.
         *     - `error`: It failed.
         * @enum {string}
         */
        StopReason: "end" | "length" | "function_call" | "aborted" | "error";
        /** @description Output of `session::store::commit` and `session::store::read`: one of the two. */
        StoreAnswer: {
            /** @description Why nothing did. */
            error?: components["schemas"]["WireError"] | null;
            /** @description What came of it. */
            ok?: unknown;
        };
        StoreHealth: {
            checkpoints: components["schemas"]["Checkpoints"] | null;
            /** @description Whether the store answers. */
            is_reachable: boolean;
            /** @description The adapter. */
            kind: string;
            limits: components["schemas"]["StoreLimits"];
            /** @description Sessions that were opened again after a failure. Always 0 for a caller who does not see every session. */
            reopened_sessions: number;
            /** @description Sessions that the caller sees. */
            sessions: number;
            size: components["schemas"]["StoreSize"] | null;
            /** @description Why it does not. */
            trouble: string | null;
        };
        StoreLimits: {
            /**
             * @description Bytes of those.
             * @example 67108864
             */
            batch_bytes: number;
            /**
             * @description Records that are written together.
             * @example 10000
             */
            batch_records: number;
            /**
             * @description Bytes of one delta of a message that streams.
             * @example 1048576
             */
            delta_bytes: number;
            /**
             * @description Bytes of the id of an entry.
             * @example 256
             */
            entry_id_bytes: number;
            /**
             * @description Branches of a session that are found without reading it; the oldest are left out.
             * @example 256
             */
            listed_branches: number;
            /**
             * @description Bytes of one message or document.
             * @example 16777216
             */
            message_bytes: number;
            /**
             * @description Bytes of the metadata of a session.
             * @example 65536
             */
            metadata_bytes: number;
            /**
             * @description Bytes of one record as it is stored.
             * @example 67108864
             */
            record_bytes: number;
            /**
             * @description Bytes of the id of a session.
             * @example 512
             */
            session_id_bytes: number;
            /**
             * @description Messages of a session that may stream at the same time.
             * @example 64
             */
            streams_per_session: number;
        };
        StoreSize: {
            /** @description Bytes of the catalogue, which is derived from the sessions. */
            catalogue_bytes: number;
            /** @description When the files were measured, milliseconds since the epoch. */
            measured_at: number;
            /** @description Bytes of the search index, which is derived too. */
            search_bytes: number;
            /** @description Bytes of the sessions. */
            sessions_bytes: number;
            /** @description Bytes of the small documents that servers share. */
            shared_bytes: number;
            /** @description Bytes of sessions that are being built. */
            staging_bytes: number;
            /** @description Bytes on the disk, all together. */
            total_bytes: number;
            /** @description Bytes of deleted sessions until their retention ends. */
            trash_bytes: number;
        };
        /** @description What went wrong while a message streamed: words, or words and a kind. */
        StreamError: string | components["schemas"]["DetailedError"];
        StreamGap: {
            /**
             * @description Why events may be missing.
             * @enum {string}
             */
            reason: "other_incarnation" | "too_old" | "ahead" | "store_swapped";
        };
        StreamLive: Record<string, never>;
        /** @description A session's task was named. */
        TaskChangedEvent: {
            /** @description The session. */
            session_id: string;
            /** @description The task's name now. */
            task?: string | null;
            /**
             * Format: int64
             * @description When it changed, milliseconds since epoch.
             */
            timestamp: number;
        };
        /**
         * @description Where the task of a session stands, by its loops.
         *
         *     - `pending`: A loop is announced and none has started.
         *     - `running`: A loop is running.
         *     - `completed`: The last loop ended well.
         *     - `failed`: The last loop was rejected or aborted.
         * @enum {string}
         */
        TaskStatus: "pending" | "running" | "completed" | "failed";
        /** @description Words. */
        TextContentBlock: {
            /** @description The words. */
            text: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "text";
        };
        /** @description What the model thought before it spoke. */
        ThinkingContentBlock: {
            /** @description The provider's signature over it. */
            signature?: string | null;
            /** @description The thought. */
            text: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "thinking";
        };
        Ticket: {
            /** @description When it ends, milliseconds since the epoch. */
            expires_at: number;
            /** @description Send it as `ticket=` in the query of an event stream. It opens one stream. */
            ticket: string;
        };
        /** @description One deleted session that can still be brought back. */
        TrashItem: {
            /**
             * Format: int64
             * @description When it was deleted, milliseconds since epoch.
             */
            deleted_at: number;
            /**
             * Format: int64
             * @description When its retention ends and it may be purged, milliseconds since epoch; absent when it is kept until it is purged by hand.
             */
            expires_at?: number | null;
            /** @description The incarnation that was deleted; `session::undelete` takes it if the id was deleted more than once. */
            incarnation: string;
            /** @description The metadata record as it was when the session was deleted. */
            meta: components["schemas"]["SessionMeta"];
            /** @description The name that an entry of it gave it, where it has no title. */
            name?: string | null;
            /** @description The beginning of its first user message. */
            preview?: string | null;
        };
        /** @description A node of a tree. */
        TreeNode: {
            /** @description The type, when it is a document or bookkeeping. */
            custom_type?: string | null;
            /** @description The entry. */
            entry_id: string;
            /** @description Its label. */
            label?: string | null;
            /** @description Its parent; `null` at a root. A parent comes before its children. */
            parent_id?: string | null;
            /** @description The beginning of what it says. */
            preview: string;
            /** @description Who speaks, when it is a message. */
            role?: components["schemas"]["Role"] | null;
            /**
             * Format: int64
             * @description When it was made, milliseconds since epoch.
             */
            timestamp: number;
        };
        /** @description Output of `session::tree`. */
        TreeResult: {
            /** @description Where the active path ends. */
            active_leaf?: string | null;
            /** @description Present when more pages remain. */
            next_cursor?: string | null;
            /** @description One page, in the order in which the entries were added. It may be empty although more pages remain. */
            nodes: components["schemas"]["TreeNode"][];
        };
        /** @description One call of the model. */
        TurnSummary: {
            /**
             * Format: int64
             * @description When it ended.
             */
            ended_at: number;
            /**
             * Format: int64
             * @description When it began, in milliseconds since the epoch.
             */
            started_at: number;
            /** @description How many answers of tools it has. */
            tool_results: number;
            /** @description Which turn of its loop, from 0. */
            turn_index: number;
            /** @description What it cost. */
            usage: components["schemas"]["LoopUsage"];
        };
        /** @description Input of `session::undelete`. */
        UndeleteRequest: {
            /** @description The incarnation; the most recently deleted one when omitted. */
            incarnation?: string | null;
        };
        /** @description Output of `session::undelete`. */
        UndeleteResult: {
            /** @description The session's metadata record, back as it was. */
            meta: components["schemas"]["SessionMeta"];
        };
        /** @description Output of `session::undo-compaction`. Without `undone` and `loops`, no compaction was in force. */
        UndoCompactionResult: {
            /** @description The entry that undoes it. Absent if nothing followed the compaction: then the active leaf moved back. */
            entry_id?: string | null;
            /** @description In a recorded session: the loops whose turns are all in the context again. */
            loops: string[];
            /** @description Why nothing was undone. */
            nothing_to_do?: string | null;
            /** @description The session. */
            session_id: string;
            /** @description The entry of the compaction that is undone. */
            undone?: string | null;
        };
        /** @description Input of `session::update-message`. */
        UpdateMessageRequest: {
            /** @description The whole new content: blocks, or one text. Only what differs from the old is written. */
            content: components["schemas"]["ContentBlock"][] | string;
            /** @description New `details`, for `function_result` and `custom` messages only. */
            details?: unknown;
            /** @description Write only if this still is the entry's revision. Otherwise nothing is written, and the answer says the revision that is there: 409 `session/revision_conflict` over HTTP, `{ updated: false }` on the bus. */
            expected_revision?: number | null;
            /** @description Opaque correlation, shown on the event. */
            origin?: components["schemas"]["JsonObject"] | null;
        };
        /** @description Output of `session::update-message`. */
        UpdateMessageResult: {
            /** @description The entry's revision after this call. */
            revision: number;
            /** @description False when `expected_revision` did not match; over HTTP that is 409 and no such answer. */
            updated: boolean;
        };
        /** @description Tokens and money, as the provider reported them. */
        Usage: {
            /** @description Tokens read from a cache. */
            cache_read?: number | null;
            /** @description Tokens written to a cache. */
            cache_write?: number | null;
            /**
             * Format: double
             * @description Price in US dollars.
             */
            cost_usd?: number | null;
            /** @description Tokens read. */
            input?: number | null;
            /** @description Tokens written. */
            output?: number | null;
            /** @description Tokens thought. */
            reasoning?: number | null;
        };
        /** @description Usage by model, with the sum of all. The number of models that are kept apart is bounded. */
        UsageByModel: {
            /**
             * @description Each model by its name.
             * @default {}
             */
            models: {
                [key: string]: components["schemas"]["UsageTotals"];
            };
            /**
             * @description All models together.
             * @default {
             *       "cache_read": 0,
             *       "cache_write": 0,
             *       "cost_usd": 0,
             *       "input": 0,
             *       "messages": 0,
             *       "output": 0,
             *       "reasoning": 0
             *     }
             */
            total: components["schemas"]["UsageTotals"];
        };
        /**
         * @description By what sums are kept apart.
         *
         *     - `day`: By day, in UTC.
         *     - `model`: By model. What tools did is left out.
         *     - `tool`: By tool. What models used is left out.
         *     - `project`: By the directory that a session works in: its metadata `cwd` or `project`.
         *     - `agent`: By the agent that a session's metadata names.
         *     - `tenant`: By the metadata `tenant`.
         *     - `session`: By session.
         * @enum {string}
         */
        UsageGroup: "day" | "model" | "tool" | "project" | "agent" | "tenant" | "session";
        /** @description Output of `session::usage`. */
        UsageResult: {
            /** @description The path to the asked entry. */
            branch: components["schemas"]["UsageByModel"];
            /** @description All branches together. */
            session: components["schemas"]["UsageByModel"];
        };
        /** @description A sum of usage reports. */
        UsageTotals: {
            /**
             * @description Tokens read from a cache.
             * @default 0
             */
            cache_read: number;
            /**
             * @description Tokens written to a cache.
             * @default 0
             */
            cache_write: number;
            /**
             * Format: double
             * @description Price in US dollars. A sum that no number holds stays at the largest one: JSON has no word for more.
             * @default 0
             */
            cost_usd: number;
            /**
             * @description Tokens read.
             * @default 0
             */
            input: number;
            /**
             * @description Messages, and other entries, that reported usage.
             * @default 0
             */
            messages: number;
            /**
             * @description Tokens written.
             * @default 0
             */
            output: number;
            /**
             * @description Tokens thought.
             * @default 0
             */
            reasoning: number;
        };
        /** @description Said by the person. */
        UserMessage: {
            /** @description What was said. */
            content: components["schemas"]["ContentBlock"][];
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            role: "user";
            /**
             * Format: int64
             * @description Milliseconds since the epoch, by the caller's clock.
             */
            timestamp: number;
        };
        Verification: {
            last: components["schemas"]["VerificationResult"] | null;
            /** @description When the running one began, milliseconds since the epoch. */
            running_since: number | null;
            /**
             * @description The result of the last verification that ended. `failed`: it could not read every session.
             * @enum {string}
             */
            status: "never" | "well" | "damaged" | "failed";
        };
        VerificationResult: {
            /** @description Bytes that were read. */
            bytes: number;
            /** @description Sessions with damage. */
            damaged: number;
            /** @description The first of them. Only callers with the right `admin` see them. */
            damaged_sessions: string[] | null;
            /** @description Why not every session was checked. */
            failure: string | null;
            /** @description When it ended, milliseconds since the epoch. */
            finished_at: number;
            /** @description Sessions that were checked, live and deleted. */
            sessions: number;
            /** @description When it began, milliseconds since the epoch. */
            started_at: number;
        };
        Version: {
            /** @description The version of the API, as in its paths. */
            api: string;
            clients: components["schemas"]["ClientRange"];
            /** @description The program. */
            name: string;
            /** @description What it speaks. */
            protocols: string[];
            /** @description Its version. */
            version: string;
        };
        /** @description One event with its place. */
        WatchEvent: {
            /** @description Where to go on after this event. */
            cursor: string;
            /** @description The payload of the type. */
            payload: unknown;
            /** @description The number of the record in its session. */
            seq: number;
            /** @description The number of the step of a stream; 0 when it is not about a stream. */
            step: number;
            /** @description The type. */
            type: components["schemas"]["EventKind"];
        };
        /** @description Output of `session::watch`. */
        WatchResult: {
            /** @description The events, in order within each session. */
            events: components["schemas"]["WatchEvent"][];
            /** @description True when events between the given cursor and the first of these may be missing: read the sessions anew, then go on from `next`. */
            gap: boolean;
            /** @description Where to go on. */
            next: string;
        };
        /** @description Why a store did not do something. */
        WireError: components["schemas"]["NotFoundWireError"] | components["schemas"]["EntryNotFoundWireError"] | components["schemas"]["NotOnPathWireError"] | components["schemas"]["ExistsWireError"] | components["schemas"]["ConflictWireError"] | components["schemas"]["RevisionConflictWireError"] | components["schemas"]["LockedWireError"] | components["schemas"]["InvalidWireError"] | components["schemas"]["InvalidCursorWireError"] | components["schemas"]["LatchedWireError"] | components["schemas"]["FullWireError"] | components["schemas"]["FailedWireError"];
        /** @description Input of `session::kv::write`. */
        WriteDocumentsRequest: {
            /**
             * @description Documents to take away in the same write. Those that are not there are passed over.
             * @default []
             */
            delete: components["schemas"]["DocumentRemoval"][];
            /**
             * @description Documents to put, all or none, in one durable write. Each key may be there once.
             * @default []
             */
            put: components["schemas"]["NewDocument"][];
        };
        /** @description Output of `session::kv::write`. */
        WriteDocumentsResult: {
            /** @description How many were taken away. */
            deleted: number;
            /** @description The documents that were put, in the order of the request. */
            documents: components["schemas"]["PutDocumentResult"][];
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
