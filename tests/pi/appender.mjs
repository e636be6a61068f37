// Appends messages to a session file with pi's own session manager, one after another, and prints their ids.
// Arguments: pi's module, the file, how many, and the pause between two in milliseconds.
const [module, file, count, pause] = process.argv.slice(2);
const { SessionManager } = await import(module);
const pi = SessionManager.open(file);
const ids = [];
for (let number = 0; number < Number(count); number++) {
  ids.push(pi.appendMessage({ role: "user", content: `pi ${number}`, timestamp: Date.now() }));
  await new Promise((resolve) => setTimeout(resolve, Number(pause)));
}
console.log(JSON.stringify(ids));
