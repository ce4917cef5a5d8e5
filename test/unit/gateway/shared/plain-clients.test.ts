/** Clients that speak no TLS, as the log has them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLogger, type Logger } from '../../../../src/base/logger.ts'
import { PlainClients } from '../../../../src/gateway/shared/plain-clients.ts'

test('of clients that speak no TLS one in ten seconds is told, with what to set', () => {
  const lines: string[] = []
  const logger: Logger = { ...silentLogger, warn: (_, message) => void lines.push(`${nowMs}: ${message}`) }
  let nowMs = 0
  const clock = { nowMs: () => 0, monotonicMs: () => nowMs }
  const clients = new PlainClients({ logger, clock, protocol: 'ES01', remedy: 'use tls' })
  for (nowMs of [0, 1, 9_999, 10_000, 19_999, 20_000]) clients.note('::1')
  assert.deepEqual(
    lines,
    [0, 10_000, 20_000].map(atMs => `${atMs}: a client did not speak TLS to the ES01 listener, which does: use tls`)
  )
})
