/** Rows of a kind that sections 12 has many of: frames that are refused and change nothing, bytes that end the connection. */
import assert from 'node:assert/strict'
import { gunzipSync } from 'node:zlib'
import { opcodes } from '../../src/wire/es01/frame.ts'
import { decodeProduced } from '../../src/wire/es01/produce-frame.ts'
import type { RawClient } from '../support/es01-session.ts'
import { closedInSilence, goesOn, greet, ping, type Es01Stage } from './es01-stage.ts'
import type { Row } from './row.ts'

/** Frames that are each refused with a text of that kind, write nothing and leave the connection open. */
export function refused(
  row: Pick<Row<Es01Stage>, 'line' | 'fact' | 'sent'>,
  text: RegExp,
  frames: () => readonly Buffer[],
  features = 0
): Row<Es01Stage> {
  return {
    ...row,
    expected: `an error frame ${text.source}; nothing written; stays open`,
    async check({ open, api }, t) {
      const before = [await api.ends('orders'), await api.ends('other')]
      const client = await greet(t, open, '', features)
      for (const [id, frame] of frames().entries()) {
        frame.writeUInt32BE(id, 4)
        client.send(frame)
        if (features === 0) assert.match(await client.errorText(id), text)
        else assert.match(await packedErrorText(client, id), text)
      }
      if (features === 0) await goesOn(client)
      assert.deepEqual([await api.ends('orders'), await api.ends('other')], before)
    }
  }
}

/** Bytes that make a broker close without a word. */
export function closes(line: string, fact: string, sent: string, frame: Buffer): Row<Es01Stage> {
  return {
    line,
    fact,
    sent,
    expected: 'closed, no frame; what was asked before is answered',
    async check({ open }, t) {
      const client = await greet(t, open)
      client.send(Buffer.concat([ping(1), frame, ping(2)]))
      assert.equal((await client.frame()).id, 1)
      await closedInSilence(client)
    }
  }
}

/** The text of a packed error frame with that id. */
export async function packedErrorText(client: RawClient, id: number): Promise<string> {
  const frame = await client.frame()
  assert.deepEqual([frame.id, frame.opcode], [id, opcodes.error])
  return gunzipSync(frame.payload).toString()
}

/** What the answer to a produce says of its only record. */
export function resultOf(payload: Buffer): { partition: number; offset: number; duplicate: boolean } {
  const results = decodeProduced(payload)
  assert.ok(typeof results !== 'string' && results.length === 1, String(results))
  return results[0] as { partition: number; offset: number; duplicate: boolean }
}
