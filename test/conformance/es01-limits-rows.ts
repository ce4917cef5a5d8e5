/**
 * Section 12: the rows on time, memory and numbers of connections. A listener in this process with clocks that run out
 * soon, or a broker that waits for the test; that the product's own clocks are the specified ones is a row too.
 */
import assert from 'node:assert/strict'
import { connectionsFor } from '../../src/gateway/shared/connections-max.ts'
import { timeoutsOf } from '../../src/gateway/es01/settings.ts'
import { limits } from '../../src/model/limits.ts'
import { resolveSettings } from '../../src/config/resolve.ts'
import { opcodes } from '../../src/wire/es01/frame.ts'
import { encodeHello } from '../../src/wire/es01/handshake.ts'
import { encodeProduceFrame } from '../../src/wire/es01/produce-frame.ts'
import { defaultSettings, startGateway, until } from '../unit/gateway/es01/fixture.ts'
import { range } from '../support/es01-session.ts'
import { closedInSilence, consume, goesOn, type Es01Stage } from './es01-stage.ts'
import type { Row } from './row.ts'

const MIB = 1024 * 1024

/** Topic `t` is what the broker of these listeners has. */
function produce(id: number, valueBytes = 1): Buffer {
  return encodeProduceFrame(id, 't', [{ value: Buffer.alloc(valueBytes, id), partition: 0 }])
}

const read = (id: number): Buffer => consume(id, { topic: 't', maxBytes: 8 * MIB })

/** The default of the product, beside the row whose clock is cut short. */
function clock(line: string, fact: string, name: keyof ReturnType<typeof timeoutsOf>, ms: number): Row<Es01Stage> {
  return {
    line,
    fact,
    sent: 'nothing: what the product is set to',
    expected: `${ms} ms`,
    check() {
      assert.equal(timeoutsOf(defaultSettings, {})[name], ms)
      return Promise.resolve()
    }
  }
}

const HELLO = 'hello not complete within 10 s'
const BODY = 'body not complete 30 s after the length'
const IDLE = 'idle (no new length prefix) for `--binary-idle-timeout` (10 min)'
const READER = 'client does not read responses for 30 s'
const PER_ADDRESS = '> `--binary-max-connections-per-ip` (256) from one IP'
const TOTAL = 'total connections > min(4096, half the fd limit, at least 16)'

const times: readonly Row<Es01Stage>[] = [
  clock(HELLO, HELLO, 'helloMs', 10_000),
  clock(BODY, BODY, 'bodyMs', 30_000),
  clock(READER, READER, 'writeMs', 30_000),
  {
    line: IDLE,
    fact: '(10 min)',
    sent: 'no flag',
    expected: '600,000 ms',
    check() {
      const resolution = resolveSettings({ flags: {}, unknownFlags: [], env: {}, file: null })
      assert.ok(resolution.ok)
      assert.equal(resolution.settings.binaryIdleTimeoutMs, 600_000)
      return Promise.resolve()
    }
  },
  {
    line: HELLO,
    fact: 'closed, no bytes',
    sent: 'nothing; a hello but its last byte; a TCP connection that is half closed at once',
    expected: 'closed, no bytes',
    async check(_, t) {
      const { open, gateway } = await startGateway(t, { timeouts: { helloMs: 40 } })
      const clients = [await open(), await open(), await open()]
      clients[1]?.send(encodeHello('abc', 0).subarray(0, -1))
      clients[2]?.socket.end()
      for (const client of clients) await closedInSilence(client)
      assert.equal(gateway.probe.refused.helloTimeout, 2)
    }
  },
  {
    line: BODY,
    fact: 'closed',
    sent: 'a length alone; a produce but its last byte',
    expected: 'closed',
    async check(_, t) {
      const { greet, gateway } = await startGateway(t, { timeouts: { bodyMs: 40 } })
      const clients = [await greet(), await greet()]
      clients[0]?.send(produce(1).subarray(0, 4))
      clients[1]?.send(produce(1).subarray(0, -1))
      for (const client of clients) await closedInSilence(client)
      assert.equal(gateway.probe.refused.bodyTimeout, 2)
    }
  },
  {
    line: IDLE,
    fact: 'closed silently',
    sent: 'nothing after the hello; nothing after an answered ping; half of a length',
    expected: 'closed, no bytes',
    async check(_, t) {
      const { greet, gateway } = await startGateway(t, { settings: { binaryIdleTimeoutMs: 50 } })
      const clients = [await greet(), await greet(), await greet()]
      if (clients[1] !== undefined) await goesOn(clients[1])
      clients[2]?.send(Buffer.alloc(2))
      for (const client of clients) await closedInSilence(client)
      assert.equal(gateway.probe.refused.idleTimeout, 3)
    }
  },
  {
    line: READER,
    fact: 'closed',
    sent: 'twelve consumes of 6 MiB each by a client that reads nothing',
    expected: 'closed; others go on',
    async check(_, t) {
      const { greet, broker, gateway } = await startGateway(t, { timeouts: { writeMs: 60 } })
      broker.bigValueBytes = 6 * MIB
      const [client, other] = [await greet(), await greet()]
      client.socket.pause()
      client.send(Buffer.concat(range(12).map(read)))
      await until('it was dropped', () => gateway.connectionCount === 1)
      assert.equal(gateway.probe.refused.slowReader, 1)
      await goesOn(other)
    }
  }
]

const numbers: readonly Row<Es01Stage>[] = [
  {
    line: PER_ADDRESS,
    fact: PER_ADDRESS,
    sent: 'no flag; 0',
    expected: '256; 1',
    check() {
      for (const [flags, most] of [
        [{}, 256],
        [{ '--binary-max-connections-per-ip': '0' }, 1]
      ] as const) {
        const resolution = resolveSettings({ flags, unknownFlags: [], env: {}, file: null })
        assert.ok(resolution.ok)
        assert.equal(Math.max(1, resolution.settings.binaryMaxConnectionsPerIp), most)
      }
      return Promise.resolve()
    }
  },
  {
    line: PER_ADDRESS,
    fact: 'accepted by TCP then closed without a byte; slot is freed when a connection ends',
    sent: 'a third connection where two are allowed; one more after one of them ended',
    expected: 'connected and closed without a byte; accepted',
    async check(_, t) {
      const { greet, open, gateway } = await startGateway(t, { settings: { binaryMaxConnectionsPerIp: 2 } })
      const [first] = [await greet(), await greet()]
      const third = await open()
      third.send(encodeHello('', 0))
      await closedInSilence(third)
      assert.equal(gateway.probe.refused.connectionsPerIp, 1)
      first.socket.end()
      await until('the slot is free', () => gateway.connectionCount === 1)
      await goesOn(await greet())
    }
  },
  {
    line: TOTAL,
    fact: 'min(4096, half the fd limit, at least 16)',
    sent: '20, 1,000 and 100,000 file descriptors',
    expected: '16, 500 and 4,096',
    check() {
      assert.deepEqual([20, 1000, 100_000].map(connectionsFor), [16, 500, 4096])
      return Promise.resolve()
    }
  },
  {
    line: TOTAL,
    fact: 'same',
    sent: 'one connection more than are allowed in all; one more after one of them ended',
    expected: 'closed without a byte; accepted',
    async check(_, t) {
      const { greet, open, gateway } = await startGateway(t, { connectionsMax: 1 })
      const first = await greet()
      await closedInSilence(await open())
      assert.equal(gateway.probe.refused.connectionsTotal, 1)
      first.socket.end()
      await until('the slot is free', () => gateway.connectionCount === 0)
      await goesOn(await greet())
    }
  },
  {
    line: '> 32 requests in progress',
    fact: 'the server stops reading further frames (back-pressure), no error',
    sent: '100 produces while none is answered',
    expected: '32 are taken, no more are read; then 100 answers, none an error',
    async check(_, t) {
      const { greet, broker, gateway } = await startGateway(t)
      const client = await greet()
      broker.isHeld = true
      client.send(Buffer.concat(range(100).map(id => produce(id))))
      await until('the reading stopped', () => gateway.probe.pauses === 1)
      assert.equal(broker.submitted, 32)
      broker.release()
      const answers = await client.frames(100)
      assert.ok(answers.every(answer => answer.opcode === opcodes.produced))
      assert.equal(broker.inProgressMax, 32)
    }
  },
  {
    line: 'memory budget 1 GiB of request bytes (frames + inflate reservations)',
    fact: 'reading waits',
    sent: 'a produce of 500 KiB while the budget is used up; a small one of another client',
    expected: 'the large one is read once there is room; the small one at once',
    async check(_, t) {
      const { greet, requestBudget, gateway, broker } = await startGateway(t, { requestBytes: MIB })
      assert.ok(requestBudget.tryReserve(MIB))
      const [large, small] = [await greet(), await greet()]
      large.send(produce(1, 500 * 1024))
      await until('the reading waits', () => gateway.probe.pauses > 0)
      small.send(produce(2))
      assert.equal((await small.frame()).id, 2)
      assert.deepEqual([broker.submitted, large.restBytes], [1, 0])
      requestBudget.release(MIB)
      assert.deepEqual([(await large.frame()).id, large.isClosed], [1, false])
    }
  },
  {
    line: 'memory budget 1 GiB of request bytes (frames + inflate reservations)',
    fact: 'memory budget 1 GiB',
    sent: 'no flag',
    expected: 'a bound by the memory of the machine, 1 GiB at most',
    check() {
      const resolution = resolveSettings({ flags: {}, unknownFlags: [], env: {}, file: null })
      assert.ok(resolution.ok)
      assert.ok(resolution.settings.requestMemoryBytes <= 1024 * MIB, String(resolution.settings.requestMemoryBytes))
      assert.equal(limits.connectionRequestsMax, 32)
      return Promise.resolve()
    }
  }
]

export const limitRows: readonly Row<Es01Stage>[] = [...times, ...numbers]
