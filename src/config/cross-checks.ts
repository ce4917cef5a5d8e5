/**
 * What must hold between settings. Pure. A field whose own value is at fault is absent here and is not judged again.
 */
import { isIP } from 'node:net'
import { frameLengthMax, limits } from '../model/limits.ts'
import { isLoopbackAddress, parseAddress } from './address.ts'
import { kafkaListenersOf } from './kafka-listeners.ts'
import { showBytes } from './parse.ts'
import { schema, tomlKeyOf } from './schema.ts'
import type { SettingField } from './setting-spec.ts'
import type { Settings } from './settings.ts'

/** @returns one line per broken rule. */
export function checkTogether(values: Partial<Settings>): string[] {
  return [
    ...checkTls(values),
    ...checkOpenBind(values),
    ...checkSameAddress(values),
    ...checkColdStorage(values),
    ...checkSizes(values)
  ]
}

function checkTls({ tlsCert, tlsKey }: Partial<Settings>): string[] {
  if (tlsCert === undefined || tlsKey === undefined || (tlsCert === null) === (tlsKey === null)) return []
  const [given, missing] = tlsCert === null ? ['tls_key', 'tls_cert'] : ['tls_cert', 'tls_key']
  return [`${given} is set without ${missing}: TLS needs both files`]
}

/** The end of the line that refuses an open door: the three ways out. */
export const openBindAdvice =
  'can be reached from other machines while auth is disabled: bind a loopback address such as 127.0.0.1, ' +
  'ask for keys with --auth required, or accept the risk with --allow-remote-unauthenticated'

/**
 * Without authentication everyone who reaches the port is an administrator. A host name is judged when the broker
 * starts, by what it resolves to.
 *
 * | auth     | host     | --allow-remote-unauthenticated | start |
 * |----------|----------|--------------------------------|-------|
 * | required | any      | any                            | yes   |
 * | disabled | loopback | any                            | yes   |
 * | disabled | other    | true                           | yes   |
 * | disabled | other    | false                          | no    |
 */
function checkOpenBind(values: Partial<Settings>): string[] {
  if (values.auth !== 'disabled' || values.allowRemoteUnauthenticated !== false) return []
  const faults: string[] = []
  for (const [field, value] of bindsOf(values)) {
    const parsed = parseAddress(value)
    if (!parsed.ok || isIP(parsed.value.host) === 0 || isLoopbackAddress(parsed.value.host)) continue
    faults.push(`${schema[field].flag} ${value} ${openBindAdvice}`)
  }
  return faults
}

type BindField = 'bind' | 'bindBinary' | 'bindKafka'

/** Every address that is listened on, and by which setting. */
function bindsOf({ bind, bindBinary, bindKafka }: Partial<Settings>): (readonly [BindField, string])[] {
  return [
    ...(bind === undefined ? [] : [['bind', bind] as const]),
    ...(bindBinary === undefined || bindBinary === null ? [] : [['bindBinary', bindBinary] as const]),
    ...kafkaListenersOf(bindKafka ?? []).map(({ address }) => ['bindKafka', address] as const)
  ]
}

function checkSameAddress(values: Partial<Settings>): string[] {
  const faults: string[] = []
  const seen = new Map<string, BindField>()
  for (const [field, address] of bindsOf(values)) {
    const other = seen.get(address)
    seen.set(address, field)
    if (other === undefined || address.endsWith(':0')) continue
    const [one, two] = [tomlKeyOf(other), tomlKeyOf(field)]
    faults.push(
      one === two
        ? `${one} has ${address} twice: each listener needs a port of its own`
        : `${one} and ${two} are both ${address}: each listener needs a port of its own`
    )
  }
  return faults
}

/** One place for cold segments; the address of a service is nothing without a bucket in it. */
function checkColdStorage({ coldStorageDir, coldStorage, coldStorageEndpoint }: Partial<Settings>): string[] {
  const faults: string[] = []
  if (coldStorageDir && coldStorage) {
    faults.push('cold_storage_dir and cold_storage are both set: sealed segments can be moved to one place only')
  }
  if (coldStorageEndpoint && coldStorage === null) {
    faults.push('cold_storage_endpoint is set without cold_storage: name the bucket too')
  }
  return faults
}

/** Pairs of which the first must not be larger than the second: what it bounds would not fit. */
const notAbove = [
  ['journalFirstSlotBytes', 'journalSlotBytes'],
  ['maxRequestBodyBytes', 'requestMemoryBytes'],
  ['maxRecordBytes', 'requestMemoryBytes'],
  ['maxRecordBytes', 'replyMemoryBytes'],
  ['maxFetchBytes', 'replyMemoryBytes']
] as const satisfies readonly (readonly [SettingField, SettingField])[]

/** The largest binary frame must fit the request memory, with what its buffer is larger, or it could never be read. */
function checkFrameFits({ maxRecordBytes, requestMemoryBytes, bindBinary, bindKafka }: Partial<Settings>): string[] {
  if (maxRecordBytes === undefined || requestMemoryBytes === undefined) return []
  if (!bindBinary && !bindKafka?.length) return []
  const neededBytes = frameLengthMax(maxRecordBytes) + limits.frameSurplusBytes
  if (requestMemoryBytes >= neededBytes) return []
  return [
    `${schema.requestMemoryBytes.flag} (${showBytes(requestMemoryBytes)}) is below ${showBytes(neededBytes)}, ` +
      'which the largest binary frame needs'
  ]
}

function checkSizes(values: Partial<Settings>): string[] {
  const faults: string[] = checkFrameFits(values)
  for (const [small, large] of notAbove) {
    const smallBytes = values[small]
    const largeBytes = values[large]
    if (smallBytes === undefined || largeBytes === undefined || smallBytes <= largeBytes) continue
    faults.push(
      `${schema[small].flag} (${showBytes(smallBytes)}) is above ${schema[large].flag} (${showBytes(largeBytes)})`
    )
  }
  return faults
}
