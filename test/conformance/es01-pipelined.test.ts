/**
 * Forty produces in one write, one of them to a topic that the key may not write and one that cannot be read, plain and
 * over TLS, and with gzip: every other one is written, in order; the two are told under their ids; the connection goes on.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect as connectSecurely } from 'node:tls'
import { test, type TestContext } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { HttpClient } from '../../src/client/http/http-client.ts'
import { createKey } from '../../src/client/http/key-calls.ts'
import type { ClientTls } from '../../src/client/tls.ts'
import { encodeFrame, opcodes } from '../../src/wire/es01/frame.ts'
import { encodeHello } from '../../src/wire/es01/handshake.ts'
import { decodeProduced, encodeProduceFrame } from '../../src/wire/es01/produce-frame.ts'
import { readBootstrapSecret } from '../support/access.ts'
import { startBroker, type Es01Address } from '../support/broker.ts'
import { makeCertificate, writeCertificate } from '../support/certificate.ts'
import { atEnd } from '../support/clean-up.ts'
import { openRaw, range, RawClient } from '../support/es01-session.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { packed, ping } from './es01-stage.ts'

const COUNT = 40
const FORBIDDEN = 13
const MALFORMED = 27

interface GrantedBroker {
  readonly es01: Es01Address
  readonly tls: ClientTls
  /** Of an administrator. */
  readonly http: HttpClient
  /** May write `orders` and nothing else. */
  readonly secret: string
}

/** A broker that asks for keys, with the topics `orders`, of one partition, and `other`. */
async function startGranted(t: TestContext, isSecure: boolean): Promise<GrantedBroker> {
  const made = makeCertificate('pipelined')
  const files = writeCertificate(temporaryDirectory(t), made)
  const secure = isSecure ? { '--tls-cert': files.cert, '--tls-key': files.key } : {}
  const { server, es01, dataDir } = await startBroker(t, { flags: { '--auth': 'required', ...secure } })
  const tls = { ca: made.cert }
  const broker = `${isSecure ? 'https' : 'http'}://${server.httpAddress}`
  const http = new HttpClient({ broker, timeoutMs: 10_000, secret: readBootstrapSecret(dataDir), tls })
  for (const topic of ['orders', 'other']) await http.createTopic(topic, 1, {})
  const acls = [{ action: 'write', topic_prefix: 'orders' }]
  const unlimited = { produce_bytes_per_sec: null, consume_bytes_per_sec: null }
  const { body } = await createKey(http, { name: 'writer', acls, ...unlimited })
  return { es01, tls, http, secret: body.secret }
}

/** A raw connection over TLS. */
async function openSecure(t: TestContext, { host, port }: Es01Address, { ca }: ClientTls): Promise<RawClient> {
  const socket = connectSecurely({ host, port, ...(ca === undefined ? {} : { ca }) })
  atEnd(t, () => socket.destroy())
  await once(socket, 'secureConnect')
  return new RawClient(socket)
}

function frameOf(id: number): Buffer {
  if (id === MALFORMED)
    return encodeFrame(id, opcodes.produce, Buffer.from('\0\x06orders\xff\xff\xff\xff\x7f', 'latin1'))
  return encodeProduceFrame(id, id === FORBIDDEN ? 'other' : 'orders', [{ key: `k${id}`, value: `v${id}` }])
}

for (const isSecure of [false, true]) {
  for (const isPacked of [false, true]) {
    const how = `${isSecure ? 'over TLS' : 'plain'}${isPacked ? ', with gzip' : ''}`
    test(`of forty pipelined produces a forbidden and a malformed one harm no other, ${how}`, async t => {
      const { es01, tls, http, secret } = await startGranted(t, isSecure)
      const client = isSecure ? await openSecure(t, es01, tls) : await openRaw(t, es01)
      client.send(encodeHello(secret, isPacked ? 1 : 0))
      assert.deepEqual([...(await client.take(13))], [...Buffer.from('ES01'), 0, 0, 0, 0, isPacked ? 1 : 0, 0, 0, 0, 0])
      const frames = range(COUNT).map(frameOf)
      client.send(Buffer.concat(isPacked ? frames.map(packed) : frames))
      const answers = (await client.frames(COUNT)).map(answer => ({
        ...answer,
        payload: isPacked ? gunzipSync(answer.payload) : answer.payload
      }))

      const errors = answers.filter(({ opcode }) => opcode === opcodes.error).sort((a, b) => a.id - b.id)
      assert.deepEqual(
        errors.map(({ id }) => id),
        [FORBIDDEN, MALFORMED]
      )
      assert.match(errors[0]?.payload.toString() ?? '', /^forbidden: .*'other'/)
      assert.match(errors[1]?.payload.toString() ?? '', /^decode: /)
      const written = answers.filter(({ opcode }) => opcode === opcodes.produced)
      const ids = range(COUNT).filter(id => id !== FORBIDDEN && id !== MALFORMED)
      assert.deepEqual(
        written.map(({ id }) => id),
        ids,
        'produces to one topic are answered in their order'
      )
      assert.deepEqual(
        written.map(({ payload }) => decodeProduced(payload)),
        ids.map((_, offset) => [{ partition: 0, offset, duplicate: false }])
      )
      client.send(isPacked ? packed(ping(77)) : ping(77))
      assert.deepEqual([(await client.frame()).id, client.isClosed], [77, false])

      const { body } = await http.consume('orders', { partition: 0, offset: 0, maxRecords: COUNT })
      assert.deepEqual(
        body.records.map(({ key, value }) => [key, value]),
        ids.map(id => [`k${id}`, `v${id}`])
      )
      assert.equal((await http.consume('other', { partition: 0, offset: 0, maxRecords: 1 })).body.high_watermark, 0)
    })
  }
}
