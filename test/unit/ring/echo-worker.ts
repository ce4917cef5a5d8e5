/**
 * A stand-in for a shard, for the tests beside it: echoes every frame of its request ring into its reply ring, and sleeps
 * on its bell when there is nothing to do. Ends at an empty frame, or when a sleep runs into `timeoutMs`; it then posts
 * why, so that a lost wake-up is a failed test and not a hang.
 */
import { parentPort, workerData } from 'node:worker_threads'
import type { MessagePort } from 'node:worker_threads'
import { copyBytes } from '../../../src/base/copy.ts'
import { Bell, Doorbell } from '../../../src/ring/bell.ts'
import { RingConsumer, RingProducer } from '../../../src/ring/spsc-ring.ts'

export interface EchoSetup {
  readonly requests: SharedArrayBuffer
  readonly replies: SharedArrayBuffer
  readonly bell: SharedArrayBuffer
  readonly flag: SharedArrayBuffer
  readonly port: MessagePort
  readonly timeoutMs: number
}

export interface EchoReport {
  readonly end: 'told' | 'timed-out'
  readonly framesEchoed: number
  readonly doorbells: number
  readonly sleeps: number
}

const setup: EchoSetup = workerData
const requests = new RingConsumer(setup.requests)
const replies = new RingProducer(setup.replies)
const bell = new Bell(setup.bell)
const doorbell = new Doorbell(setup.flag, setup.port)
let framesEchoed = 0
let doorbells = 0
let sleeps = 0

/** Reserves room for a reply, or asks for it. Asked and tried again: room may have come before the asking was seen. */
function reserveOrAsk(bytes: number): number {
  const at = replies.reserve(bytes)
  if (at >= 0) return at
  replies.askForRoom()
  return replies.reserve(bytes)
}

/** Echoes frames until there are none or no room. @returns true at the empty frame. */
function drain(): boolean {
  for (let at = requests.next(); at >= 0; at = requests.next()) {
    if (requests.length === 0) return true
    const target = reserveOrAsk(requests.length)
    if (target < 0) {
      requests.putBack()
      return false
    }
    copyBytes(requests.buffer, at, at + requests.length, replies.buffer, target)
    framesEchoed++
  }
  return false
}

let end: EchoReport['end'] | null = null
while (end === null) {
  const rung = bell.read()
  const isTold = drain()
  replies.publish()
  requests.release()
  // One ring for both: replies to take, and room that main may have asked for.
  if (doorbell.ring()) doorbells++
  if (isTold) end = 'told'
  else if (!bell.wait(rung, setup.timeoutMs)) end = 'timed-out'
  else sleeps++
}
const report: EchoReport = { end, framesEchoed, doorbells, sleeps }
parentPort?.postMessage(report)
setup.port.close()
