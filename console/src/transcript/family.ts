// The sub-agents that the calls of a session started, and the call that started the session.

import { useEffect, useMemo, useState } from "preact/hooks";
import { getJson, sessionPath } from "../api/client";
import type { SpawnsAnswer } from "../api/loops";
import { readSession } from "../api/session";
import type { PathItem } from "../api/types";
import { sessionTitle } from "../ui/format";

export interface SubAgent {
  session: string;
  agent: string;
}

export interface Starter {
  session: string;
  title: string;
}

/** The sub-agents by the calls that started them, see `callKey`. */
export type SubAgents = ReadonlyMap<string, SubAgent>;

/** A call; agents number their calls anew in each loop. */
export function callKey(item: PathItem, call: string): string {
  return `${item.origin?.loop_id ?? ""} ${call}`;
}

/** Read when the session is opened, and again when a call of a recorded agent has ended. */
export function useFamily(session: string, items: PathItem[]): { subAgents: SubAgents; starter: Starter | undefined } {
  const [spawns, setSpawns] = useState<SpawnsAnswer>();
  const [starter, setStarter] = useState<Starter>();
  const last = items.at(-1);
  const ended = last?.message?.role === "function_result" && last.origin?.loop_id !== undefined ? last.entry_id : "";
  const [newest, setNewest] = useState(ended);
  if (ended !== "" && ended !== newest) {
    setNewest(ended);
  }
  useEffect(() => {
    const work = new AbortController();
    // A session without a family looks the same as one whose family could not be read.
    getJson<SpawnsAnswer>(sessionPath(session, "spawns"), {}, work.signal).then(setSpawns, () => undefined);
    return () => work.abort();
  }, [session, newest]);
  const parent = spawns?.spawns.find((link) => link.child_session_id === session)?.parent_session_id;
  useEffect(() => {
    if (parent === undefined) {
      return;
    }
    const work = new AbortController();
    readSession(parent, work.signal).then(
      ({ meta, details }) => setStarter({ session: parent, title: sessionTitle(meta, details) }),
      () => setStarter({ session: parent, title: parent }),
    );
    return () => work.abort();
  }, [parent]);
  const subAgents = useMemo(() => subAgentsOf(session, spawns), [session, spawns]);
  return { subAgents, starter };
}

function subAgentsOf(session: string, spawns: SpawnsAnswer | undefined): SubAgents {
  const agents = new Map(spawns?.sessions.map((one) => [one.session_id, one.agent_id]));
  const own = (spawns?.spawns ?? []).filter((link) => link.parent_session_id === session);
  return new Map(own.map((link) => [`${link.parent_loop_id} ${link.tool_call_id}`, { session: link.child_session_id, agent: agents.get(link.child_session_id) ?? "" }]));
}
