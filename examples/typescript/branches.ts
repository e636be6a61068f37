// An agent that answers a question twice, compares the answers, and goes on with the better one: `node branches.ts`.
import { Bough } from "boughdb";

/** Stands for a model that is asked with another instruction each time. */
const answers = { short: "Hazel.", long: "Hazel, a shrub that bears nuts in autumn." };

const session = await new Bough().create({ title: "Name a tree" });
const question = await session.append("Name a tree, and say one thing about it.");

let best = { entryId: "", label: "", length: 0 };
for (const [label, text] of Object.entries(answers)) {
  const message = { role: "assistant" as const, content: [{ type: "text", text }] };
  const { entry_id: entryId } = await session.append(message, { parentId: question.entry_id });
  if (text.length > best.length) best = { entryId, label, length: text.length };
}

await session.switchTo(best.entryId);
await session.append("Tell me more.", { expectedLeaf: best.entryId });
const branches = [];
for await (const branch of session.branches()) branches.push(branch);
console.log(`went on with the ${best.label} answer; ${branches.length} branches are kept`);
