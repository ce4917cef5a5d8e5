/**
 * Host names in --bind, --bind-binary and --bind-kafka, looked up while everyone who reaches the ports is an administrator. Main
 * thread, at start. The broker then listens on the very address that was judged: a name may mean another one later.
 */
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { isLoopbackAddress, parseAddress, showAddress } from '../config/address.ts'
import { openBindAdvice } from '../config/cross-checks.ts'
import { kafkaListenersOf, type KafkaListener } from '../config/kafka-listeners.ts'
import { schema } from '../config/schema.ts'
import type { Settings } from '../config/settings.ts'

/** Every address of a name. Rejects with an error that has a `code`. */
export type LookUp = (name: string) => Promise<readonly { readonly address: string }[]>

const lookUpAll: LookUp = name => lookup(name, { all: true })

/**
 * @returns the settings with addresses where names stood; the names themselves stay allowed as Host headers.
 * @throws Error of one line: a name is not known, or has an address that other machines can reach.
 */
export async function judgeBinds(settings: Settings, lookUp: LookUp = lookUpAll): Promise<Settings> {
  if (settings.auth !== 'disabled' || settings.allowRemoteUnauthenticated) return settings
  const http = await judge('bind', settings.bind, lookUp)
  const binary = settings.bindBinary === null ? null : await judge('bindBinary', settings.bindBinary, lookUp)
  const bindKafka: string[] = []
  for (const listener of kafkaListenersOf(settings.bindKafka)) bindKafka.push(await judgeKafka(listener, lookUp))
  return {
    ...settings,
    bind: http.bind,
    bindBinary: binary?.bind ?? null,
    bindKafka,
    allowedHost: [...settings.allowedHost, ...http.names]
  }
}

/** Clients are told the name, as they would be without this. */
async function judgeKafka({ address, advertised }: KafkaListener, lookUp: LookUp): Promise<string> {
  const { bind, names } = await judge('bindKafka', address, lookUp)
  if (advertised !== null) return `${bind}=${showAddress(advertised)}`
  return names.length === 0 ? bind : `${bind}=${address}`
}

async function judge(
  field: 'bind' | 'bindBinary' | 'bindKafka',
  bind: string,
  lookUp: LookUp
): Promise<{ bind: string; names: readonly string[] }> {
  const parsed = parseAddress(bind)
  // Of an IP the configuration was the judge.
  if (!parsed.ok || isIP(parsed.value.host) !== 0) return { bind, names: [] }
  const { host, port } = parsed.value
  const { flag } = schema[field]
  const addresses = await lookUp(host).catch((error: NodeJS.ErrnoException) => {
    throw new Error(`cannot listen on ${bind} (${flag}): the host name cannot be looked up (${error.code})`)
  })
  const reachable = addresses.find(({ address }) => !isLoopbackAddress(address))
  if (reachable !== undefined) throw new Error(`${flag} ${bind} is ${reachable.address}, which ${openBindAdvice}`)
  const address = addresses[0]?.address ?? host
  return { bind: showAddress({ host: address, port }), names: [host] }
}
