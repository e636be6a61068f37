// An agent that gives work to two others, each with a session of its own, and prints the tree of sessions: `node sub-agents.ts`.
import { Bough } from "boughdb";

const bough = new Bough();
const boss = await bough.create({ title: "Report about trees" });
await boss.append("Write a report about trees.");
for (const topic of ["hazel", "birch"]) {
  const helper = await bough.create({ title: `Research: ${topic}`, metadata: { parent: boss.id } });
  await helper.append(`Find out about ${topic}.`);
  await helper.setStatus("done");
  await boss.appendCustom("sub_agent", { session: helper.id, topic });
}

console.log((await boss.meta()).title);
for await (const child of bough.list({ metadata: { parent: boss.id }, order: "created_asc" })) {
  console.log("  ", child.title, child.status);
}
