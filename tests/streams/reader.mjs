// Keeps the messages of a session by the events about them, and prints them once the session says that it is done.

import { EventSource } from 'eventsource'

const LAST_WORDS = ['stop_reason', 'error_message', 'usage', 'model', 'provider']
const messages = {}
const started = []
const finished = []
const source = new EventSource(process.argv[2])
// The client does not keep its process alive while it waits to connect again.
setInterval(() => {}, 1000)

function grow(data) {
  const kept = messages[data.entry_id]
  if (data.revision <= kept.revision) throw new Error(`repeated: ${JSON.stringify(data)}`)
  const content = kept.message.content
  if (data.block === content.length) content.push({ type: data.kind, text: '' })
  content[data.block].text += data.text
  kept.revision = data.revision
}

function take(name, change) {
  source.addEventListener(name, (event) => change(JSON.parse(event.data)))
}

for (const name of ['message.started', 'message.snapshot']) {
  take(name, ({ entry_id, revision, message }) => (messages[entry_id] = { revision, message }))
}
take('message.started', ({ entry_id }) => started.push(entry_id))
take('message.delta', grow)
take('message.finished', (data) => {
  const kept = messages[data.entry_id]
  for (const word of LAST_WORDS) if (word in data) kept.message[word] = data[word]
  kept.revision = data.revision
  finished.push(data.entry_id)
})
take('gap', (data) => {
  throw new Error(`a gap: ${JSON.stringify(data)}`)
})
take('session::status-changed', ({ payload }) => {
  if (payload.status !== 'done') return
  console.log(JSON.stringify({ messages, started, finished }))
  process.exit(0)
})
