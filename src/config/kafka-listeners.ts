/**
 * Where the Kafka listener listens, and what it says of where it is: `host:port`, or `host:port=advertised host:port`. Pure
 * functions of any thread.
 */
import { parseAddress, type Address } from './address.ts'
import { list, type Kind } from './kinds.ts'
import { bad, good, type Reading } from './parse.ts'

/** One address to listen on. */
export interface KafkaListener {
  readonly address: string
  /** What clients that come by it are told; null: the address that they reached. */
  readonly advertised: Address | null
}

/** How absence is written and shown. */
const OFF = 'off'

/** Splits one of them. */
export function parseKafkaListener(text: string): Reading<KafkaListener> {
  const [address = '', advertised, ...more] = text.split('=')
  if (more.length > 0) return bad(`has '${text}' with more than one =: write host:port=advertised host:port`)
  const listened = parseAddress(address)
  if (!listened.ok) return listened
  if (advertised === undefined) return good({ address: address.trim(), advertised: null })
  const told = parseAddress(advertised)
  if (!told.ok) return told
  if (told.value.host === '0.0.0.0' || told.value.host === '::') {
    return bad(`advertises ${told.value.host}, which no client can reach: name this machine as they see it`)
  }
  return good({ address: address.trim(), advertised: told.value })
}

/** The listeners of a setting that was checked. */
export function kafkaListenersOf(bindKafka: readonly string[]): readonly KafkaListener[] {
  return bindKafka.flatMap(text => {
    const parsed = parseKafkaListener(text)
    return parsed.ok ? [parsed.value] : []
  })
}

function faultOf(word: string): string | null {
  const parsed = parseKafkaListener(word)
  return parsed.ok ? null : parsed.problem
}

/** Any number of listeners. */
export function kafkaListeners(): Kind<readonly string[]> {
  const listeners = list(
    '<host:port[=host:port]>',
    'host:port, with =host:port if clients know it by another address',
    faultOf
  )
  return {
    ...listeners,
    allowed: `${listeners.allowed}, or ${OFF}`,
    read: raw =>
      raw === OFF || (Array.isArray(raw) && raw.length === 1 && raw[0] === OFF) ? good([]) : listeners.read(raw),
    show: texts => (texts.length === 0 ? OFF : listeners.show(texts))
  }
}
