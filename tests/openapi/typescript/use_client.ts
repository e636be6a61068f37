// Uses the client that openapi-fetch makes of the types of openapi-typescript: create, append a document and a message, list, read, a conflict.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema";

declare const process: { argv: string[] };

function check(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(what);
}

const baseUrl = process.argv[2] ?? "";
const client = createClient<paths>({ baseUrl });
const session_id = "typescript";
const path = { session_id };

const created = await client.PUT("/v1/sessions/{session_id}", { params: { path }, body: { title: "From TypeScript" } });
check(created.data?.created === true, "the session is new");

const custom = { custom_type: "note", data: { n: 1 } };
const document = await client.POST("/v1/sessions/{session_id}/entries", { params: { path }, body: { custom } });
check(document.data !== undefined, "the document is appended");

const message: components["schemas"]["UserMessage"] = { role: "user", content: [{ type: "text", text: "hello" }], timestamp: 1 };
const appended = await client.POST("/v1/sessions/{session_id}/entries", { params: { path }, body: { message } });
check(appended.data !== undefined, "the message is appended");
const { entry_id } = appended.data;

const sessions = await client.GET("/v1/sessions", { params: { query: { limit: 10 } } });
check(sessions.data?.sessions.some((session) => session.session_id === session_id) === true, "the session is listed");

const messages = await client.GET("/v1/sessions/{session_id}/messages", { params: { path } });
check(messages.data?.messages[0]?.entry_id === entry_id, "the message is read");

const entry = await client.GET("/v1/sessions/{session_id}/entries/{entry_id}", { params: { path: { session_id, entry_id } } });
check(entry.data?.entry.revision === 0, "the entry is read");

const stale = await client.POST("/v1/sessions/{session_id}/entries", { params: { path }, body: { message, expected_leaf: "another" } });
const problem: components["schemas"]["Problem"] | undefined = stale.error;
check(stale.response.status === 409 && problem?.code === "session/leaf_conflict", "a stale leaf is a conflict with its code");
const described = await fetch(new URL(problem.type, baseUrl));
check(described.ok, "the type of a problem leads to its page");
