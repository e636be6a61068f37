// The published Node SDK against Bough's bus: the programs of the session-manager readme, and what breaks.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'

process.env.OTEL_ENABLED ??= 'false'
const { registerWorker, TriggerAction } = await import('iii-sdk')

const NAMES = ['created', 'message-added', 'message-updated', 'status-changed', 'meta-updated', 'deleted']

const pause = (ms) => new Promise((done) => setTimeout(done, ms))

const freePort = () =>
  new Promise((done) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address()
      probe.close(() => done(port))
    })
  })

class Server {
  dir = mkdtempSync(join(tmpdir(), 'bough-node-'))

  async start() {
    this.port ??= await freePort()
    const words = ['serve', '--data-dir', this.dir, '--listen', '127.0.0.1:0', '--bus', `127.0.0.1:${this.port}`]
    this.process = spawn(process.env.BOUGH, words, { stdio: ['ignore', 'pipe', 'ignore'] })
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

const server = new Server()
let worker
let other
const call = (function_id, payload = {}) => worker.trigger({ function_id, payload, timeoutMs: 10_000 })
const has = async (id) => JSON.stringify(await call('engine::functions::list')).includes(id)

before(async () => {
  await server.start()
  worker = registerWorker(`ws://127.0.0.1:${server.port}`)
  other = registerWorker(`ws://127.0.0.1:${server.port}`)
})

after(async () => {
  await Promise.all([worker.shutdown(), other.shutdown()])
  await server.kill()
  rmSync(server.dir, { recursive: true, force: true })
  // The SDK keeps timers of its own alive.
  setTimeout(() => process.exit(), 200).unref()
})

// A handler for each of the six triggers, with a filter.
async function bindAll(owner) {
  const seen = Object.fromEntries(NAMES.map((name) => [name, []]))
  for (const name of NAMES) {
    const function_id = `node::${owner}-${name}`
    worker.registerFunction(function_id, async (event) => {
      seen[name].push(event)
      return { ok: true }
    })
    worker.registerTrigger({ type: `session::${name}`, function_id, config: { metadata: { owner } } })
  }
  await until(() => has(`node::${owner}-deleted`), 'registration')
  return seen
}

// Everything that makes an event, with twenty revisions of one message.
async function liveALife(owner) {
  const { session_id } = await call('session::create', { title: owner, metadata: { owner } })
  const { entry_id } = await call('session::append', { session_id, message: user('a') })
  for (let revision = 1; revision <= 20; revision += 1) {
    const content = [{ type: 'text', text: 'a'.repeat(revision) }]
    const update = await call('session::update-message', { session_id, entry_id, content })
    assert.deepEqual(update, { updated: true, revision })
  }
  await call('session::set-status', { session_id, status: 'done' })
  await call('session::set-meta', { session_id, description: 'd' })
  await call('session::delete', { session_id })
}

test('the quickstart runs', async () => {
  const { session_id } = await call('session::create', { title: 'Weather question', metadata: { owner: 'u_1' } })
  await call('session::append', { session_id, message: user("What's the weather?") })
  const page = await call('session::messages', { session_id })
  assert.equal(page.messages[0].message.content[0].text, "What's the weather?")
})

test('all six triggers, with filters and streaming', async () => {
  const seen = await bindAll('u_7')
  await liveALife('u_8')
  await liveALife('u_7')
  await until(() => seen['message-updated'].length >= 20 && NAMES.every((name) => seen[name].length > 0), 'events')
  assert.equal(seen.created[0].title, 'u_7')
  const revisions = seen['message-updated'].map((event) => event.revision)
  assert.deepEqual(revisions, Array.from({ length: 20 }, (_, n) => n + 1))
  for (const name of NAMES) {
    assert.equal(new Set(seen[name].map((event) => event.session_id)).size, 1, `${name} of another owner`)
  }
})

for (const [id, payload, words] of [
  ['session::messages', { session_id: 'nope' }, 'session/not_found'],
  ['session::set-status', { session_id: 'nope', status: 'halted' }, 'unknown variant `halted`'],
  ['session::nope', {}, 'function_not_found'],
]) {
  test(`an error says ${words}`, async () => {
    await assert.rejects(call(id, payload), (error) => `${error.code}: ${error.message}`.includes(words))
  })
}

test('functions of another connection', async () => {
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
})

test('it reconnects after kill -9, and nothing is lost', async () => {
  const { session_id } = await call('session::create')
  await call('session::append', { session_id, message: user('kept') })
  const seen = await bindAll('u_9')
  await server.kill()
  await server.start()
  const isConnected = () => call('session::list').then(() => true, () => false)
  await until(isConnected, 'reconnecting')
  await until(() => has('node::u_9-deleted'), 'registering again')
  assert.equal((await call('session::messages', { session_id })).messages.length, 1)
  // The binding is made again after the functions; nothing says when it has arrived.
  await until(async () => {
    await call('session::create', { metadata: { owner: 'u_9' } })
    return seen.created.length > 0
  }, 'an event after the reconnect')
})
