// One conversation with the client as npm installs it, on whichever runtime runs this file: a server of its own, an append, a reply that
// streams, and live events.
import { Bough } from "boughdb";

const bough = await Bough.local(process.argv[2]);
const session = await bough.create({ title: "Weather" });
await session.append("Will it rain?");
await session.stream(async (reply) => {
  reply.text("No, ");
  reply.text("it stays dry.");
});
const texts = [];
for await (const item of session.messages()) texts.push(item.message.content[0].text);
if (texts.join("|") !== "Will it rain?|No, it stays dry.") throw new Error(`found ${texts.join("|")}`);
let last = "";
for await (const event of session.watch({ after: "start" })) {
  last = event.type;
  if (last === "message.finished") break;
}
if (last !== "message.finished") throw new Error("the events ended before the reply did");
process.exit(0);
