/** Brokers that ask for keys, and keys of theirs. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { startBroker, type BrokerOptions, type TestBroker } from './broker.ts'
import { HttpApi, parse } from './http-api.ts'

export interface Rule {
  readonly action: string
  readonly topic_prefix: string
}

/** A key as the API tells of it. */
export interface KeyAnswer {
  readonly key_id: string
  readonly name: string
  readonly acls: readonly Rule[]
  readonly produce_bytes_per_sec: number | null
  readonly consume_bytes_per_sec: number | null
  readonly created_at_ms: number
  readonly disabled: boolean
}

/** A key with its secret, and calls that send it. */
export interface TestKey {
  readonly id: string
  readonly secret: string
  readonly api: HttpApi
}

export interface GuardedBroker {
  readonly broker: TestBroker
  readonly admin: TestKey
}

/** The secret that a first start wrote. */
export function readBootstrapSecret(dataDir: string): string {
  return readFileSync(join(dataDir, 'bootstrap.key'), 'utf8')
}

/** A broker that asks for keys, and its first one. */
export async function startGuarded(t: TestContext, options: BrokerOptions = {}): Promise<GuardedBroker> {
  const broker = await startBroker(t, { ...options, flags: { '--auth': 'required', ...options.flags } })
  return { broker, admin: await firstKey(broker) }
}

/** What the first start of that broker made. */
export async function firstKey({ url, dataDir }: Pick<TestBroker, 'url' | 'dataDir'>): Promise<TestKey> {
  const secret = readBootstrapSecret(dataDir)
  const api = new HttpApi(url, secret)
  const { keys } = parse<{ keys: KeyAnswer[] }>(await api.get('/admin/keys'))
  return { id: keys.find(({ name }) => name === 'bootstrap-admin')?.key_id ?? '', secret, api }
}

/** Makes a key with these rules, written `read:orders`. */
export async function makeTestKey(admin: HttpApi, ...rules: readonly string[]): Promise<TestKey> {
  const acls = rules.map(rule => {
    const [action = '', topic_prefix = ''] = rule.split(':')
    return { action, topic_prefix }
  })
  const answer = await admin.post('/admin/keys', { name: rules.join(' ') || 'none', acls })
  const { key, secret } = parse<{ key: KeyAnswer; secret: string }>(answer)
  return { id: key.key_id, secret, api: new HttpApi(admin.url, secret) }
}

/** Revokes a key; on return it has stopped working. */
export async function revokeKey(admin: HttpApi, id: string): Promise<void> {
  const { status, text } = await admin.call('DELETE', `/admin/keys/${id}`)
  assert.deepEqual([status, text], [204, ''])
}
