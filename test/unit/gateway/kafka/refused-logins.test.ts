/** Which refused logins the log has, and how loud. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Logger } from '../../../../src/base/logger.ts'
import { RefusedLogins } from '../../../../src/gateway/kafka/refused-logins.ts'

test('of refused logins one in ten seconds is a warning, with how many were none', () => {
  const lines: (readonly [string, unknown])[] = []
  const take = (level: string) => (fields: object) => {
    lines.push([level, (fields as { unwarnedBefore?: number }).unwarnedBefore])
  }
  const logger: Logger = { debug: take('debug'), info: take('info'), warn: take('warn'), error: take('error') }
  let nowMs = 0
  const logins = new RefusedLogins(logger, { nowMs: () => 0, monotonicMs: () => nowMs })
  const client = { remoteAddress: '::1', advertised: { host: 'h', port: 1 } }
  for (const atMs of [0, 1, 9_999, 10_000, 19_999, 20_000, 40_000]) {
    nowMs = atMs
    logins.note(client, { mechanism: 'PLAIN', user: null }, 'no')
  }
  assert.deepEqual(lines, [
    ['warn', 0],
    ['debug', undefined],
    ['debug', undefined],
    ['warn', 2],
    ['debug', undefined],
    ['warn', 1],
    ['warn', 0]
  ])
})
