/** How a client of the Kafka protocol says whose key it has. */
import assert from 'node:assert/strict'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import type { KafkaClient } from './kafka-client.ts'

/** @returns the code of the answer. */
export async function handshake(client: KafkaClient, mechanism: string): Promise<number> {
  return (await client.call(apis.saslHandshake, 1, { mechanism })).errorCode
}

export async function authenticate(client: KafkaClient, token: string) {
  return client.call(apis.saslAuthenticate, 2, { authBytes: Buffer.from(token) })
}

/** By PLAIN. @returns the code of the answer. */
export async function loginPlain(client: KafkaClient, id: string, secret: string): Promise<number> {
  assert.equal(await handshake(client, 'PLAIN'), 0)
  return (await authenticate(client, `\0${id}\0${secret}`)).errorCode
}
