/** What a supervisor hears, with a systemd-notify of the test's own, and with the real one where there is one. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { silentLogger, type Logger } from '../../../src/base/logger.ts'
import { createTellSupervisor } from '../../../src/cli/supervisor.ts'
import { spawnBroker } from '../../support/broker.ts'
import { atEnd } from '../../support/clean-up.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'

const path = process.env['PATH'] ?? ''

interface Warning {
  readonly fields: object
  readonly message: string
}

function listen(): { logger: Logger; warnings: Warning[] } {
  const warnings: Warning[] = []
  return { logger: { ...silentLogger, warn: (fields, message) => warnings.push({ fields, message }) }, warnings }
}

/** A folder with this script as systemd-notify. */
function fakeNotify(t: TestContext, script: string): string {
  const folder = join(temporaryDirectory(t), 'bin')
  mkdirSync(folder)
  writeFileSync(join(folder, 'systemd-notify'), `#!/bin/sh\n${script}\n`)
  chmodSync(join(folder, 'systemd-notify'), 0o755)
  return folder
}

/** Longer than any of these takes. */
const LONG_MS = 60_000

test('without a supervisor nothing is started, and with one it gets the words in order', async t => {
  const heard = join(temporaryDirectory(t), 'heard')
  const folder = fakeNotify(t, `echo "$NOTIFY_SOCKET $*" >> '${heard}'`)
  const env = { PATH: `${folder}:${path}` }
  const { logger, warnings } = listen()
  await createTellSupervisor(env, logger)(['READY=1'], LONG_MS)
  assert.equal(existsSync(heard), false)
  const tell = createTellSupervisor({ ...env, NOTIFY_SOCKET: '/run/notify' }, logger)
  await tell(['READY=1', 'STATUS=serving a and b'], LONG_MS)
  await tell(['STOPPING=1'], LONG_MS)
  assert.equal(readFileSync(heard, 'utf8'), '/run/notify READY=1 STATUS=serving a and b\n/run/notify STOPPING=1\n')
  assert.deepEqual(warnings, [])
})

test('a word that nobody takes is given up when the next is due, and that one when its time is over', async t => {
  // Ends only by a signal.
  const folder = fakeNotify(t, 'exec tail -f /dev/null')
  const { logger, warnings } = listen()
  const tell = createTellSupervisor({ PATH: `${folder}:${path}`, NOTIFY_SOCKET: '/run/notify' }, logger)
  await Promise.all([tell(['READY=1'], LONG_MS), tell(['STOPPING=1'], 200)])
  assert.deepEqual(
    warnings.map(({ fields }) => fields),
    [{ words: ['STOPPING=1'], reason: 'nobody took it in time' }]
  )
})

test('a supervisor that cannot be told costs a line in the log that says why', async t => {
  for (const [PATH, reason] of [
    [temporaryDirectory(t), 'there is no systemd-notify: install it, or unset NOTIFY_SOCKET'],
    [`${fakeNotify(t, 'echo "no such socket" >&2; exit 1')}:${path}`, 'no such socket']
  ] as const) {
    const { logger, warnings } = listen()
    await createTellSupervisor({ PATH, NOTIFY_SOCKET: '/run/notify' }, logger)(['READY=1'], LONG_MS)
    assert.deepEqual(warnings, [
      { fields: { words: ['READY=1'], reason }, message: 'the supervisor could not be told' }
    ])
  }
})

/** Prints the datagrams of a unix socket as systemd reads them: one a line, barriers left out. */
const LISTENER = `
import os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print('listening', flush=True)
while True:
    data, fds, flags, address = socket.recv_fds(s, 4096, 4)
    for fd in fds: os.close(fd)
    if data != b'BARRIER=1': print(data.decode().replace('\\n', ' '), flush=True)
`

const missing = ['systemd-notify --version', 'python3 -c import+socket;socket.recv_fds'].filter(command => {
  const [name = '', ...words] = command.split(' ')
  return (
    spawnSync(
      name,
      words.map(word => word.replace('+', ' '))
    ).status !== 0
  )
})

test(
  'the broker tells systemd that it is ready when it is, and that it stops',
  { skip: missing.length > 0 && `missing: ${missing.join(', ')}` },
  async t => {
    const socket = join(temporaryDirectory(t), 'notify')
    const listener = spawn('python3', ['-c', LISTENER, socket], { stdio: ['ignore', 'pipe', 'inherit'] })
    atEnd(t, () => listener.kill('SIGKILL'))
    let heard = ''
    listener.stdout.setEncoding('utf8').on('data', (text: string) => (heard += text))
    await once(listener.stdout, 'data')
    const broker = await spawnBroker(t, { env: { NOTIFY_SOCKET: socket } })
    const { host } = new URL(broker.url)
    while (!/READY.*\n/.test(heard)) await once(listener.stdout, 'data')
    const ready = `READY=1 STATUS=serving ${host} and ${broker.es01.host}:${broker.es01.port} and ${broker.kafka}`
    assert.equal(heard, `listening\n${ready}\n`)
    assert.deepEqual(await broker.kill('SIGTERM'), { code: 0, signal: null })
    while (!heard.includes('STOPPING')) await once(listener.stdout, 'data')
    assert.equal(heard, `listening\n${ready}\nSTOPPING=1 STATUS=stopping\n`)
    assert.deepEqual(
      broker.logs.filter(line => line['level'] === 'warn'),
      []
    )
  }
)
