/** The life of a serving process, with a server whose moments the test decides. */
import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import type { Logger } from '../../../src/base/logger.ts'
import { BrokerError } from '../../../src/model/errors.ts'
import type { RunningServer } from '../../../src/cli/running-server.ts'
import { serve, type ServeParts } from '../../../src/cli/serve.ts'
import { UsageError } from '../../../src/cli/io.ts'
import { resolveSettings } from '../../../src/config/resolve.ts'
import type { Settings } from '../../../src/config/settings.ts'
import { capture } from './terminal.ts'

interface Line {
  readonly level: string
  readonly fields: object
  readonly message: string
}

function settingsOf(flags: Record<string, string>): Settings {
  const resolution = resolveSettings({ flags, unknownFlags: [], env: {}, file: null })
  assert.ok(resolution.ok)
  return resolution.settings
}

/** Everything `serve` needs, and what it did with it. */
function stage(
  options: { server?: Partial<RunningServer>; flags?: Record<string, string>; isTerminal?: boolean } = {}
) {
  const lines: Line[] = []
  const waiting: { message: string; resolve: () => void }[] = []
  const log = (level: string) => (fields: object, message: string) => {
    lines.push({ level, fields, message })
    for (const entry of waiting) if (entry.message === message) entry.resolve()
  }
  const logger: Logger = { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') }
  const stderr = capture(options.isTerminal)
  const signals = new EventEmitter()
  const exits: number[] = []
  const clock = { nowMs: 0 }
  const server: RunningServer = {
    httpAddress: '127.0.0.1:9000',
    binaryAddress: null,
    kafkaAddresses: [],
    dataDir: '/data',
    durability: 'synced',
    shards: 1,
    firstStart: false,
    engine: 'uws',
    tls: null,
    reload: () => null,
    describeState: () => Promise.resolve({ shards: [] }),
    stop: () => Promise.resolve({ syncs: 7 }),
    ...options.server
  }
  const wanted = { read: () => settingsOf(options.flags ?? {}) }
  const levels: string[] = []
  const terminal = { isLost: false }
  const told: string[] = []
  const parts: ServeParts = {
    settings: settingsOf(options.flags ?? {}),
    readSettings: () => wanted.read(),
    setLogLevel: level => levels.push(level),
    logger,
    startServer: () => Promise.resolve(server),
    tellSupervisor(words) {
      told.push(...words)
      return Promise.resolve()
    },
    stderr,
    signals,
    hasLostTerminal: () => terminal.isLost,
    exit: code => exits.push(code),
    monotonicMs: () => clock.nowMs
  }
  const logged = (message: string) => {
    if (lines.some(line => line.message === message)) return Promise.resolve()
    return new Promise<void>(resolve => waiting.push({ message, resolve }))
  }
  return { parts, lines, stderr, signals, exits, clock, logged, wanted, levels, terminal, told }
}

test('the ready line has the addresses in effect, and a signal stops the broker with exit code 0', async () => {
  const { parts, lines, stderr, signals, logged } = stage({
    server: { binaryAddress: '127.0.0.1:41234', kafkaAddresses: ['127.0.0.1:41235'] }
  })
  const finished = serve(parts)
  await logged('ready')
  signals.emit('SIGTERM')
  assert.equal(await finished, 0)
  assert.deepEqual(lines[0], {
    level: 'info',
    message: 'ready',
    fields: {
      httpAddress: '127.0.0.1:9000',
      binaryAddress: '127.0.0.1:41234',
      kafkaAddresses: ['127.0.0.1:41235'],
      dataDir: '/data',
      durability: 'synced',
      shards: 1,
      engine: 'uws',
      firstStart: false
    }
  })
  assert.deepEqual(
    lines.map(line => line.message),
    ['ready', 'stopping', 'stopped']
  )
  assert.equal(stderr.text, '')
  assert.deepEqual([signals.listenerCount('SIGINT'), signals.listenerCount('SIGTERM')], [0, 0])
})

test('the first start and a terminal get a banner with addresses, durability, access and the next command', async () => {
  for (const options of [
    { server: { firstStart: true, httpAddress: '127.0.0.1:8080' } },
    { isTerminal: true, server: { httpAddress: '127.0.0.1:8080' } }
  ]) {
    const { parts, stderr, signals, logged } = stage(options)
    const finished = serve(parts)
    await logged('ready')
    signals.emit('SIGINT')
    assert.equal(await finished, 0)
    for (const words of [
      'http://127.0.0.1:8080 (uWebSockets.js)',
      '/data',
      'answered after its records are synced to disk',
      'disabled: everyone on this machine',
      'npx millrace topic create --name orders --partitions 2 --broker http://127.0.0.1:8080'
    ]) {
      assert.ok(stderr.text.includes(words), `${words} is not in: ${stderr.text}`)
    }
  }
})

test('the command of the banner goes to loopback where the broker listens on all addresses', async () => {
  for (const [httpAddress, local] of [
    ['0.0.0.0:8080', '127.0.0.1:8080'],
    ['[::]:8080', '[::1]:8080']
  ] as const) {
    const flags = { '--allow-remote-unauthenticated': 'true' }
    const { parts, stderr, signals, logged } = stage({ isTerminal: true, flags, server: { httpAddress } })
    const finished = serve(parts)
    await logged('ready')
    signals.emit('SIGINT')
    await finished
    assert.ok(stderr.text.includes(`HTTP       http://${httpAddress} `), stderr.text)
    assert.ok(stderr.text.includes(`--broker http://${local}\n`), stderr.text)
  }
})

test('the banner does not promise a sync that the settings put off, and names an open door', async () => {
  const flags = { '--flush-every-records': '100', '--allow-remote-unauthenticated': 'true' }
  const { parts, stderr, signals, logged } = stage({ isTerminal: true, flags })
  const finished = serve(parts)
  await logged('ready')
  signals.emit('SIGINT')
  await finished
  assert.match(stderr.text, /synced every 100 records .* a power cut may lose answered records/)
  assert.match(stderr.text, /EVERYONE who reaches these addresses/)
})

test('the banner of a broker with keys says where the first one is, and the next command uses it', async () => {
  const { parts, stderr, signals, logged } = stage({ isTerminal: true, flags: { '--auth': 'required' } })
  const finished = serve(parts)
  await logged('ready')
  signals.emit('SIGINT')
  await finished
  assert.match(stderr.text, /auth +every request needs an API key; the first one was written to \/data\/bootstrap\.key/)
  assert.match(stderr.text, /next .*--auth-file \/data\/bootstrap\.key\n/)
})

test('a supervisor hears of readiness when all is served, and of the end when it begins', async () => {
  const { parts, signals, told, logged } = stage({ server: { binaryAddress: '127.0.0.1:9001' } })
  const { promise, resolve } = Promise.withResolvers<RunningServer>()
  const server = await parts.startServer(parts.settings, parts.logger)
  const finished = serve({ ...parts, startServer: () => promise })
  assert.deepEqual(told, [])
  resolve(server)
  await logged('ready')
  const ready = ['READY=1', 'STATUS=serving 127.0.0.1:9000 and 127.0.0.1:9001']
  assert.deepEqual(told, ready)
  signals.emit('SIGTERM')
  await finished
  assert.deepEqual(told, [...ready, 'STOPPING=1', 'STATUS=stopping'])
})

test('a supervisor does not hear that a broker is ready which does not start', async () => {
  const { parts, told } = stage()
  assert.equal(await serve({ ...parts, startServer: () => Promise.reject(new BrokerError('INTERNAL', {})) }), 1)
  assert.deepEqual(told, [])
})

test('a second signal ends the process at once with a non-zero code; the echo of one Ctrl-C does not', async () => {
  const { promise: stopped, resolve: finishStop } = Promise.withResolvers<Record<string, number>>()
  const { parts, signals, exits, clock, logged } = stage({ server: { stop: () => stopped } })
  const finished = serve(parts)
  await logged('ready')
  signals.emit('SIGINT')
  clock.nowMs = 100
  signals.emit('SIGINT')
  assert.deepEqual(exits, [])
  signals.emit('SIGTERM')
  assert.deepEqual(exits, [1])
  clock.nowMs = 900
  signals.emit('SIGINT')
  assert.deepEqual(exits, [1, 1])
  finishStop({})
  await finished
})

test('a signal during the start stops the broker as soon as it runs', async () => {
  const { parts, lines, signals } = stage()
  const { promise, resolve } = Promise.withResolvers<RunningServer>()
  const started = await parts.startServer(parts.settings, parts.logger)
  const finished = serve({ ...parts, startServer: () => promise })
  signals.emit('SIGTERM')
  resolve(started)
  assert.equal(await finished, 0)
  assert.equal(lines.at(-1)?.message, 'stopped')
})

test('a stop that takes longer than --shutdown-timeout is given up with exit code 1', async () => {
  const stop = () => new Promise<Record<string, number>>(() => undefined)
  const { parts, lines, signals, logged } = stage({ server: { stop }, flags: { '--shutdown-timeout': '10ms' } })
  const finished = serve(parts)
  await logged('ready')
  signals.emit('SIGTERM')
  assert.equal(await finished, 1)
  assert.match(lines.at(-1)?.message ?? '', /not stopped within --shutdown-timeout/)
})

test('a stop that fails exits 1 and the reason is in the log', async () => {
  const failure = new Error('disk gone')
  const { parts, lines, signals, logged } = stage({ server: { stop: () => Promise.reject(failure) } })
  const finished = serve(parts)
  await logged('ready')
  signals.emit('SIGTERM')
  assert.equal(await finished, 1)
  assert.deepEqual(lines.at(-1), { level: 'error', fields: { error: failure }, message: 'stopping failed' })
})

test('a failed start is one clear line without a stack and exits 1', async () => {
  const failures = [
    new BrokerError('NOT_READY', { problem: 'port 9000 is in use' }),
    new Error('data directory /data is locked\nby another broker')
  ]
  const texts = [
    'millrace: cannot start: the broker is not ready: port 9000 is in use\n',
    'millrace: cannot start: data directory /data is locked by another broker\n'
  ]
  for (const [index, failure] of failures.entries()) {
    const { parts, lines, stderr, signals } = stage()
    assert.equal(await serve({ ...parts, startServer: () => Promise.reject(failure) }), 1)
    assert.equal(stderr.text, texts[index])
    assert.deepEqual(lines, [])
    assert.equal(signals.listenerCount('SIGTERM'), 0)
  }
})

test('a start that fails by a bug has its stack in the log', async () => {
  const { parts, lines } = stage()
  assert.equal(await serve({ ...parts, startServer: () => Promise.reject(new TypeError('x is not a function')) }), 1)
  assert.equal(lines[0]?.message, 'start failed')
})

test('SIGHUP takes what can change, names what needs a restart, and stops nothing', async () => {
  const taken: Settings[] = []
  const reload = (settings: Settings): null => {
    taken.push(settings)
    return null
  }
  const { parts, lines, signals, logged, wanted, levels } = stage({
    server: { reload, tls: { notAfterMs: 0, isSelfSigned: false } }
  })
  const finished = serve(parts)
  await logged('ready')
  wanted.read = () =>
    settingsOf({
      '--cors-origin': 'https://app.example',
      '--log-level': 'debug',
      '--bind': '127.0.0.1:1',
      '--shutdown-timeout': '11s'
    })
  signals.emit('SIGHUP')
  assert.deepEqual(levels, ['debug'])
  assert.deepEqual([taken[0]?.corsOrigin, taken[0]?.bind], [['https://app.example'], '127.0.0.1:9000'])
  const [, reloaded, restart] = lines
  assert.deepEqual(reloaded, {
    level: 'info',
    message: 'reloaded',
    fields: { changed: ['--cors-origin', '--shutdown-timeout', '--log-level'], certificate: 'read anew' }
  })
  assert.deepEqual([restart?.level, restart?.fields], ['warn', { needRestart: ['--bind'] }])
  signals.emit('SIGTERM')
  assert.equal(await finished, 0)
  assert.deepEqual(lines.find(line => line.message === 'stopping')?.fields, { signal: 'SIGTERM', timeoutMs: 11_000 })
  assert.deepEqual([signals.listenerCount('SIGHUP'), signals.listenerCount('SIGUSR2')], [0, 0])
})

test('SIGHUP with a faulty configuration changes nothing and says what is wrong', async () => {
  const taken: Settings[] = []
  const { parts, lines, signals, logged, wanted } = stage({ server: { reload: s => (taken.push(s), null) } })
  const finished = serve(parts)
  await logged('ready')
  wanted.read = () => {
    throw new UsageError('bind = "x" is not an address')
  }
  signals.emit('SIGHUP')
  assert.equal(lines.at(-1)?.level, 'error')
  assert.deepEqual(lines.at(-1)?.fields, { faults: 'bind = "x" is not an address' })
  assert.deepEqual(taken, [])
  signals.emit('SIGTERM')
  assert.equal(await finished, 0)
})

test('a reload and a state dump asked for during the start happen once the broker runs, and once', async () => {
  const { parts, lines, signals, logged } = stage({ server: { describeState: () => Promise.resolve({ topics: 7 }) } })
  const { promise, resolve } = Promise.withResolvers<RunningServer>()
  const started = await parts.startServer(parts.settings, parts.logger)
  const finished = serve({ ...parts, startServer: () => promise })
  for (const signal of ['SIGHUP', 'SIGUSR2', 'SIGHUP']) signals.emit(signal)
  assert.equal(lines.length, 0)
  resolve(started)
  await logged('state')
  assert.deepEqual(lines.map(line => line.message).sort(), ['ready', 'reloaded', 'state'])
  assert.deepEqual(lines.find(line => line.message === 'state')?.fields, { state: { topics: 7 } })
  signals.emit('SIGTERM')
  assert.equal(await finished, 0)
})

test('the banner says https and until when the certificate holds, and the next command trusts it', async () => {
  const flags = { '--tls-cert': '/etc/m.crt', '--tls-key': '/etc/m.key' }
  const server = { tls: { notAfterMs: Date.UTC(2031, 0, 2), isSelfSigned: true }, binaryAddress: '127.0.0.1:9001' }
  const { parts, stderr, signals, logged } = stage({ isTerminal: true, flags, server })
  const finished = serve(parts)
  await logged('ready')
  signals.emit('SIGINT')
  await finished
  assert.match(stderr.text, /HTTPS +https:\/\/127\.0\.0\.1:9000 .*\n.*ES01 over TLS/)
  assert.match(stderr.text, /TLS +on, with a certificate until 2031-01-02/)
  assert.match(stderr.text, /--broker https:\/\/127\.0\.0\.1:9000 --tls-ca \/etc\/m\.crt\n/)
})

test('at a terminal the end is one line with what matters, and the counters are there for who debugs', async () => {
  const counters = { records: 7, syncs: 3, journalBytes: 4096, loopTurns: 99 }
  const { parts, lines, signals, logged } = stage({
    isTerminal: true,
    server: { stop: () => Promise.resolve(counters) }
  })
  const finished = serve(parts)
  await logged('ready')
  signals.emit('SIGINT')
  await finished
  assert.deepEqual(lines.slice(-2), [
    { level: 'debug', fields: counters, message: 'counters' },
    { level: 'info', fields: {}, message: 'stopped: 7 record(s) written, 3 sync(s), 4.0 KiB of journal' }
  ])
})

test('a SIGHUP because the terminal was closed stops the broker', async () => {
  const { parts, lines, signals, logged, terminal } = stage({ isTerminal: true })
  const finished = serve(parts)
  await logged('ready')
  terminal.isLost = true
  signals.emit('SIGHUP')
  assert.equal(await finished, 0)
  assert.match(lines.at(-1)?.message ?? '', /^stopped/)
})
