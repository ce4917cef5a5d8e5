/**
 * Answers as no broker should send them: the decoders of the client say what a plain reading says and throw at nothing,
 * and a client over a real socket settles each request once, as answered or with an Es01Error that tells what is known.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { connectEs01, Es01Error, type Es01Client } from '../../src/client/es01/client.ts'
import { decodeConsumed } from '../../src/wire/es01/consume.ts'
import { FrameReader } from '../../src/wire/es01/frame.ts'
import { decodeProduced } from '../../src/wire/es01/produce-frame.ts'
import { atEnd } from '../support/clean-up.ts'
import { isLong, seed } from '../support/crash-run.ts'
import { diceOf, replayLine, type Dice } from '../support/log-random.ts'

const FILE = 'test/fuzz/es01-answers.test.ts'
const PAYLOADS = isLong ? 1_000_000 : 20_000
const SESSIONS = isLong ? 2_000 : 150
/** Of a session, all sent at once. */
const REQUESTS = 20
const edges: readonly number[] = [0, 1, 2, 12, 13, 28, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 0xffff_ffff]

const u32 = (value: number): Buffer => Buffer.from([value >>> 24, value >>> 16, value >>> 8, value])

/** An answer to a consume with so many records; lengths and counts lie now and then. */
function consumedPayload(dice: Dice, lies: number): Buffer {
  const said = (value: number): Buffer => u32(dice.chance(lies) ? dice.pick(edges) : value)
  const count = dice.below(5)
  const parts = [Buffer.alloc(4), u32(dice.below(1000)), Buffer.alloc(4), u32(dice.below(1000)), said(count)]
  for (let i = 0; i < count; i++) {
    const [key, value] = [dice.bytes(dice.below(20)), dice.bytes(dice.below(40))]
    const hasKey = dice.chance(0.5)
    parts.push(u32(dice.below(4)), Buffer.alloc(4), u32(i), Buffer.alloc(8, 1), said(hasKey ? key.length : 0xffff_ffff))
    if (hasKey) parts.push(key)
    parts.push(said(value.length), value)
  }
  return Buffer.concat(parts)
}

function producedPayload(dice: Dice, count: number, lies: number): Buffer {
  const said = dice.chance(lies) ? dice.pick(edges) : count
  return Buffer.concat([
    u32(said),
    ...Array.from({ length: count }, (_, i) => Buffer.concat([u32(0), Buffer.alloc(4), u32(i), Buffer.alloc(1)]))
  ])
}

/** Cuts a payload, or changes a byte of it, in a part of all cases. */
function damaged(dice: Dice, payload: Buffer): Buffer {
  const way = dice.below(4)
  if (way === 0) return payload.subarray(0, dice.below(payload.length + 1))
  if (way === 1 && payload.length > 0) payload[dice.below(payload.length)] = dice.below(256)
  return payload
}

/** Keys and values of a payload in the plainest way; null: it is torn. */
function readPlainly(payload: Buffer): (string | null)[] | null {
  let at = 0
  const take = (bytes: number): Buffer => {
    if (bytes > payload.length - at) throw new RangeError('torn')
    at += bytes
    return payload.subarray(at - bytes, at)
  }
  const fields: (string | null)[] = []
  try {
    take(16)
    for (let count = take(4).readUInt32BE(); count > 0; count--) {
      take(20)
      const keyBytes = take(4).readInt32BE()
      fields.push(keyBytes < 0 ? null : take(keyBytes).toString('hex'))
      fields.push(take(take(4).readUInt32BE()).toString('hex'))
    }
    return fields
  } catch (error) {
    assert.ok(error instanceof RangeError)
    return null
  }
}

test(`${PAYLOADS} payloads are decoded as a plain reading has them, or refused with a text`, t => {
  t.diagnostic(replayLine(seed, FILE))
  const dice = diceOf(seed)
  let refused = 0
  for (let i = 0; i < PAYLOADS; i++) {
    const payload = damaged(dice, consumedPayload(dice, 0.05))
    const [found, due] = [decodeConsumed(payload), readPlainly(payload)]
    const where = `${payload.toString('hex')}\n${replayLine(seed, FILE)}`
    assert.equal(typeof found === 'string', due === null, where)
    if (typeof found === 'string') refused++
    else {
      const fields = found.records.flatMap(({ key, value }) => [key?.toString('hex') ?? null, value.toString('hex')])
      assert.deepEqual(fields, due, where)
    }
    const count = dice.below(5)
    const results = decodeProduced(damaged(dice, producedPayload(dice, count, 0.1)))
    assert.ok(typeof results === 'string' || results.length <= 5)
  }
  t.diagnostic(`${refused} of ${PAYLOADS} were refused`)
  assert.ok(refused > PAYLOADS / 10 && refused < PAYLOADS * 0.9)
})

test('frames cut anywhere come out whole and in order, and a length that lies ends the stream', t => {
  const dice = diceOf(seed)
  t.diagnostic(replayLine(seed, FILE))
  for (let round = 0; round < 300; round++) {
    const reader = new FrameReader(4096)
    const payloads = Array.from({ length: dice.below(20) }, () => dice.bytes(dice.below(dice.chance(0.1) ? 4000 : 40)))
    const frames = payloads.map((payload, id) =>
      Buffer.concat([u32(5 + payload.length), u32(id), Buffer.from([0x82]), payload])
    )
    const bytes = Buffer.concat([...frames, u32(dice.pick([0, 4, 4097, 0xffff_ffff]))])
    const got: string[] = []
    let broken = ''
    for (let at = 0; at < bytes.length;) {
      const chunk = bytes.subarray(at, at + 1 + dice.below(900))
      at += chunk.length
      reader.push(chunk)
      for (let frame = reader.next(); frame !== null && broken === ''; frame = reader.next()) {
        if (typeof frame === 'string') broken = frame
        else got.push(`${frame.requestId} ${frame.payload.toString('hex')}`)
      }
    }
    assert.deepEqual(
      got,
      payloads.map((payload, id) => `${id} ${payload.toString('hex')}`)
    )
    assert.match(broken, /^a frame says it has \d+ bytes$/)
  }
})

/** Answers each request of a session by its dice: well for a while, then worse and worse. */
class BadBroker {
  readonly #dice: Dice
  readonly #socket: Socket
  readonly #reader = new FrameReader(1 << 20)
  #isGreeted = false
  /** How many of the first requests were answered as they should be, before anything else was sent. */
  wellAnswered = 0
  #answered = 0
  #isBad = false

  constructor(dice: Dice, socket: Socket) {
    this.#dice = dice
    this.#socket = socket
    // The client cuts it off: that is looked at from its side.
    socket.on('error', () => socket.destroy())
    socket.on('data', chunk => this.#take(chunk))
  }

  #take(chunk: Buffer): void {
    this.#reader.push(chunk)
    if (!this.#isGreeted) {
      this.#isGreeted = true
      this.#reader.skip(12)
      this.#socket.write(Buffer.from('45533031000000000000000000', 'hex'))
    }
    for (let frame = this.#reader.next(); frame !== null; frame = this.#reader.next()) {
      assert.ok(typeof frame !== 'string')
      if (!this.#socket.writable) return
      this.#answer(frame.requestId, frame.opcode)
    }
  }

  #answer(id: number, opcode: number): void {
    const dice = this.#dice
    this.#isBad ||= dice.chance(0.1)
    if (!this.#isBad) this.wellAnswered++
    const lies = this.#isBad ? 0.2 : 0
    const whole =
      opcode === 1 ? producedPayload(dice, 1, lies) : opcode === 2 ? consumedPayload(dice, lies) : Buffer.alloc(0)
    const payload = this.#isBad ? damaged(dice, whole) : whole
    const answerOpcode =
      this.#isBad && dice.chance(0.2) ? dice.pick([0x81, 0x82, 0x83, 0xff, 0x01, 0x42]) : opcode | 0x80
    const length = this.#isBad && dice.chance(0.05) ? dice.pick(edges) : 5 + payload.length
    const answerId = this.#isBad && dice.chance(0.05) ? dice.below(100) : id
    const bytes = Buffer.concat([u32(length), u32(answerId), Buffer.from([answerOpcode]), payload])
    const cut = dice.below(bytes.length)
    this.#socket.write(bytes.subarray(0, cut))
    this.#socket.write(bytes.subarray(cut))
    // At last it goes: whoever has no answer then is to hear of that.
    if (++this.#answered === REQUESTS || (this.#isBad && dice.chance(0.05))) this.#socket.end()
  }
}

/** A listener whose connections are each a BadBroker; the last one made is `last`. */
async function startBadBroker(t: TestContext, dice: Dice): Promise<{ port: number; last: () => BadBroker }> {
  let last: BadBroker | undefined
  const server: Server = createServer(socket => {
    last = new BadBroker(dice, socket)
    atEnd(t, () => socket.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(t, () => server.close())
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  return {
    port: address.port,
    last: () => {
      assert.ok(last !== undefined)
      return last
    }
  }
}

function request(client: Es01Client, dice: Dice): Promise<unknown> {
  const kind = dice.below(3)
  if (kind === 0) return client.ping()
  if (kind === 1) return client.produce('t', [{ value: 'v' }])
  return client.consume({ topic: 't', partition: 0, offset: 0, maxRecords: 10, maxBytes: 1000 })
}

test(`a client of a broker that lies settles every request of ${SESSIONS} sessions once, and none wrongly`, async t => {
  t.diagnostic(replayLine(seed, FILE))
  const dice = diceOf(seed)
  const { port, last } = await startBadBroker(t, dice)
  const ends = new Map<string, number>()
  for (let session = 0; session < SESSIONS; session++) {
    const client = await connectEs01({ host: '127.0.0.1', port, requestTimeoutMs: 60_000 })
    const settled = await Promise.allSettled(Array.from({ length: REQUESTS }, () => request(client, dice)))
    for (const [i, result] of settled.entries()) {
      const end = result.status === 'fulfilled' ? 'answered' : kindOf(result.reason)
      ends.set(end, (ends.get(end) ?? 0) + 1)
      if (i < last().wellAnswered)
        assert.equal(end, 'answered', `session ${session}, request ${i}\n${replayLine(seed, FILE)}`)
    }
    assert.equal(client.inFlight, 0)
    client.destroy()
  }
  t.diagnostic([...ends].map(([end, count]) => `${end} ${count}`).join(', '))
  for (const end of ['answered', 'protocol', 'connection', 'refused']) assert.ok(ends.has(end), end)
})

/** What kind of failure it is; of a request that left, nothing is said to be unwritten but by the broker. */
function kindOf(reason: unknown): string {
  assert.ok(reason instanceof Es01Error, String(reason))
  if (reason.kind !== 'refused') assert.notEqual(reason.written, 'yes')
  return reason.kind
}
