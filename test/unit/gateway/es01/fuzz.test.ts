/** Random frames over sockets against an oracle that decodes them in the plainest way: right answer, no crash. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { encodeConsumeFrame } from '../../../../src/wire/es01/consume.ts'
import { encodeFrame, opcodes } from '../../../../src/wire/es01/frame.ts'
import { encodeProduceFrame } from '../../../../src/wire/es01/produce-frame.ts'
import { agreeOnGzip, withPayload } from '../../../support/es01-gzip.ts'
import { startGateway } from './fixture.ts'
import type { RawClient } from './fixture.ts'

type Outcome = 'produced' | 'consumed' | 'pong' | 'decode' | 'refused' | 'closed'

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Throws RangeError or TypeError at the first byte that does not fit. */
function decodePlainly(opcode: number, payload: Buffer): Outcome {
  let at = 0
  const bytes = (length: number): Buffer => {
    if (length > payload.length - at) throw new RangeError('too short')
    at += length
    return payload.subarray(at - length, at)
  }
  const topic = utf8.decode(bytes(bytes(2).readUInt16BE()))
  if (opcode === opcodes.consume) {
    const partition = bytes(4).readUInt32BE()
    bytes(16)
    return topic === 't' && partition < 4 ? 'consumed' : 'refused'
  }
  const producerBytes = bytes(4).readInt32BE()
  if (producerBytes >= 0) utf8.decode(bytes(producerBytes))
  const count = bytes(4).readUInt32BE()
  let isInRange = true
  for (let i = 0; i < count; i++) {
    const keyBytes = bytes(4).readInt32BE()
    bytes(Math.max(0, keyBytes))
    bytes(bytes(4).readUInt32BE())
    const partition = bytes(4).readInt32BE()
    isInRange = isInRange && partition < 4
    bytes(8)
  }
  return topic === 't' && isInRange ? 'produced' : 'refused'
}

/** Is the payload of such a frame looked at? */
const isCarried = (opcode: number): boolean => opcode === opcodes.produce || opcode === opcodes.consume

function expected(frame: Buffer): Outcome {
  const opcode = frame[8] as number
  if (opcode === opcodes.ping) return 'pong'
  if ([0x81, 0x82, 0x83, 0xff].includes(opcode)) return 'refused'
  if (opcode !== opcodes.produce && opcode !== opcodes.consume) return 'closed'
  try {
    return decodePlainly(opcode, frame.subarray(9))
  } catch (error) {
    assert.ok(error instanceof RangeError || error instanceof TypeError)
    return 'decode'
  }
}

function outcomeOf(opcode: number, payload: Buffer): Outcome {
  if (opcode === opcodes.produced) return 'produced'
  if (opcode === opcodes.consumed) return 'consumed'
  if (opcode === opcodes.pong) return 'pong'
  return payload.toString().startsWith('decode: ') ? 'decode' : 'refused'
}

for (const hasGzip of [false, true]) {
  test(`random and damaged frames, cut into random pieces, get the answers that the specification gives them${hasGzip ? ', as gzip too' : ''}`, async t => {
    const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31))
    t.diagnostic(`seed ${seed}; replay: SEED=${seed} node --test test/unit/gateway/es01/fuzz.test.ts`)
    let state = seed >>> 0
    const random = (below: number): number => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0
      return Math.floor((state / 2 ** 32) * below)
    }
    const pick = <T>(values: readonly T[]): T => values[random(values.length)] as T
    const key = (): Buffer | null => (random(2) === 0 ? null : Buffer.alloc(random(20), random(256)))
    // Some are to be inflated off the main thread.
    const valueBytes = (): number => (hasGzip && random(60) === 0 ? 70_000 + random(70_000) : random(300))
    const record = () => ({ key: key(), value: Buffer.alloc(valueBytes(), random(256)), partition: random(6) - 1 })

    const wholeFrame = (id: number): Buffer => {
      const topic = pick(['t', 't', 't', 'nope', 'ö'])
      const kind = random(10)
      if (kind === 0) return encodeFrame(id, opcodes.ping, Buffer.alloc(random(50)))
      if (kind === 1) return encodeFrame(id, pick([0x81, 0x82, 0x83, 0xff]), Buffer.alloc(random(50)))
      if (kind < 4) {
        const [partition, offset] = [random(5), random(100)]
        return encodeConsumeFrame(id, { topic, partition, offset, maxRecords: random(50), maxBytes: random(1000) })
      }
      const records = Array.from({ length: random(8) }, record)
      return encodeProduceFrame(id, topic, records, random(6) === 0 ? 'producer' : null)
    }
    const damage = (frame: Buffer, id: number): Buffer => {
      for (let flips = random(4); flips > 0 && frame.length > 9; flips--) {
        frame[9 + random(frame.length - 9)] = pick([0, 1, 0x7f, 0x80, 0xff, random(256)])
      }
      const end = random(3) === 0 ? 9 + random(frame.length - 8) : frame.length
      const tail = random(5) === 0 ? Buffer.alloc(random(30), 0xff) : Buffer.alloc(0)
      return encodeFrame(id, frame[8] as number, Buffer.concat([frame.subarray(9, end), tail]))
    }

    /** The frame as it is sent, and what is to come of it. A stream of another checksum or length is no gzip. */
    const dispatch = (frame: Buffer): { sent: Buffer; wanted: Outcome } => {
      const wanted = expected(frame)
      if (!hasGzip) return { sent: frame, wanted }
      const isBroken = random(10) === 0
      const sent = withPayload(frame, payload => {
        const stream = gzipSync(payload)
        const at = stream.length - 1 - random(8)
        if (isBroken) stream[at] = (stream[at] as number) ^ 0xff
        return stream
      })
      return { sent, wanted: isBroken && isCarried(frame[8] as number) ? 'decode' : wanted }
    }

    const { open, greet: greetPlainly, gateway } = await startGateway(t)
    const greet = async () => (hasGzip ? agreeOnGzip(await open()) : greetPlainly())
    const seen = new Map<Outcome, number>()
    const count = (outcome: Outcome) => seen.set(outcome, (seen.get(outcome) ?? 0) + 1)
    let client: RawClient = await greet()
    for (let round = 0; round < 150; round++) {
      const frames = Array.from({ length: 1 + random(40) }, (_, id) => {
        return dispatch(random(2) === 0 ? wholeFrame(id) : damage(wholeFrame(id), id))
      })
      const bytes = Buffer.concat(frames.map(({ sent }) => sent))
      for (let at = 0; at < bytes.length;) {
        const end = Math.min(bytes.length, at + 1 + random(random(2) === 0 ? 10 : 5000))
        client.send(bytes.subarray(at, end))
        if (random(8) === 0) await new Promise(resolve => setImmediate(resolve))
        at = end
      }
      const answers = await client.frames(frames.length)
      for (const answer of answers) {
        const { sent, wanted } = frames[answer.id] ?? assert.fail('an answer to a frame')
        count(wanted)
        const payload = hasGzip ? gunzipSync(answer.payload) : answer.payload
        const got = outcomeOf(answer.opcode, payload)
        if (got !== wanted) assert.fail(`${got}, not ${wanted}: ${sent.toString('hex')} → ${payload.toString()}`)
      }
      if (random(5) > 0) continue
      const unknown = encodeFrame(1, pick([0, 4, 0x80, 0xfe]), Buffer.alloc(random(9)))
      assert.equal(expected(unknown), 'closed')
      client.send(unknown)
      await client.closed()
      assert.equal(client.restBytes, 0)
      count('closed')
      client = await greet()
    }
    for (const outcome of ['produced', 'consumed', 'pong', 'decode', 'refused', 'closed'] as const) {
      assert.ok((seen.get(outcome) ?? 0) > 5, `${outcome} came up ${seen.get(outcome) ?? 0} times`)
    }
    assert.equal(gateway.probe.refused.bug, 0)
  })
}
