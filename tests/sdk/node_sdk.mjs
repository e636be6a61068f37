// The published Node SDK against Bough's bus: the programs of the session-manager readme, and what breaks.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

process.env.OTEL_ENABLED ??= 'false'
const { registerWorker, TriggerAction } = await import('iii-sdk')

const pause = (ms) => new Promise((done) => setTimeout(done, ms))

const freePort = () =>
  new Promise((done) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address()
      probe.close(() => done(port))
    })
  })

class Server {
  constructor(port) {
    this.dir = mkdtempSync(join(tmpdir(), 'bough-node-'))
    this.port = port
  }

  async start() {
    const words = [this.dir, '127.0.0.1:0', `127.0.0.1:${this.port}`]
    this.process = spawn(process.env.BOUGH_SERVE, words, { stdio: ['ignore', 'pipe', 'ignore'] })
    await new Promise((done) => this.process.stdout.once('data', done))
  }

  async kill() {
    const gone = new Promise((done) => this.process.once('exit', done))
    this.process.kill('SIGKILL')
    await gone
  }
}

async function until(check, what) {
  for (let turn = 0; turn < 300; turn += 1) {
    if (await check()) return
    await pause(100)
  }
  assert.fail(`${what} did not happen`)
}

const user = (text) => ({ role: 'user', content: [{ type: 'text', text }], timestamp: 1717800000000 })

const server = new Server(await freePort())
await server.start()
const url = `ws://127.0.0.1:${server.port}`
const worker = registerWorker(url)
const other = registerWorker(url)
const call = (function_id, payload = {}, client = worker) =>
  client.trigger({ function_id, payload, timeoutMs: 10_000 })

// The quickstart.
const created = await call('session::create', { title: 'Weather question', metadata: { owner: 'u_1' } })
const session_id = created.session_id
await call('session::append', { session_id, message: user("What's the weather?") })
const page = await call('session::messages', { session_id })
assert.equal(page.messages[0].message.content[0].text, "What's the weather?")

// All six triggers, with filters.
const names = ['created', 'message-added', 'message-updated', 'status-changed', 'meta-updated', 'deleted']
const seen = Object.fromEntries(names.map((name) => [name, []]))
for (const name of names) {
  worker.registerFunction(`node::on-${name}`, async (event) => {
    seen[name].push(event)
    return { ok: true }
  })
  const config = { metadata: { owner: 'u_7' } }
  worker.registerTrigger({ type: `session::${name}`, function_id: `node::on-${name}`, config })
}
const has = async (id) => JSON.stringify(await call('engine::functions::list')).includes(id)
await until(() => has('node::on-deleted'), 'registration')
for (const owner of ['u_8', 'u_7']) {
  const made = await call('session::create', { title: owner, metadata: { owner } })
  const id = made.session_id
  const entry = await call('session::append', { session_id: id, message: user('a') })
  for (let revision = 1; revision <= 20; revision += 1) {
    const content = [{ type: 'text', text: 'a'.repeat(revision) }]
    const update = await call('session::update-message', { session_id: id, entry_id: entry.entry_id, content })
    assert.deepEqual(update, { updated: true, revision })
  }
  await call('session::set-status', { session_id: id, status: 'done' })
  await call('session::set-meta', { session_id: id, description: 'd' })
  await call('session::delete', { session_id: id })
}
await until(() => seen['message-updated'].length >= 20 && names.every((name) => seen[name].length > 0), 'events')
assert.equal(seen.created[0].title, 'u_7')
assert.deepEqual(
  seen['message-updated'].map((event) => event.revision),
  Array.from({ length: 20 }, (_, n) => n + 1),
)
for (const name of names) {
  assert.equal(new Set(seen[name].map((event) => event.session_id)).size, 1, `${name}: another owner's events came`)
}

// Errors.
for (const [id, payload, words] of [
  ['session::messages', { session_id: 'nope' }, 'session/not_found'],
  ['session::set-status', { session_id, status: 'halted' }, 'unknown variant `halted`'],
  ['session::nope', {}, 'function_not_found'],
]) {
  await assert.rejects(call(id, payload), (error) => `${error.code}: ${error.message}`.includes(words))
}

// A function on another connection, and one without an answer.
const notes = []
other.registerFunction('other::double', async (data) => ({ n: data.n * 2 }))
other.registerFunction('other::note', async (data) => {
  notes.push(data)
  return {}
})
await until(() => has('other::note'), 'hosting')
assert.deepEqual(await call('other::double', { n: 21 }), { n: 42 })
worker.trigger({ function_id: 'other::note', payload: { x: 1 }, action: TriggerAction.Void() })
await until(() => notes.length === 1, 'a call without an answer')
assert.ok((await call('engine::workers::list')).workers.length > 0)

// The server dies; the SDK reconnects, and bindings work again.
await server.kill()
await server.start()
await until(
  () =>
    call('session::list').then(
      () => true,
      () => false,
    ),
  'reconnect',
)
await until(() => has('node::on-created'), 'registering again')
assert.equal((await call('session::messages', { session_id })).messages.length, 1)
await pause(500)
const before = seen.created.length
await call('session::create', { title: 'after', metadata: { owner: 'u_7' } })
await until(() => seen.created.length > before, 'an event after the reconnect')
assert.equal(seen.created.at(-1).title, 'after')

await server.kill()
console.log('node sdk: ok')
process.exit(0)
