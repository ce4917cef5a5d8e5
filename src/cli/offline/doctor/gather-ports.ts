/** Tries to take the addresses that a broker would listen on, and gives them back at once. Main thread. */
import { createServer } from 'node:net'
import { parseAddress } from '../../../config/address.ts'
import { kafkaListenersOf } from '../../../config/kafka-listeners.ts'
import type { Settings } from '../../../config/settings.ts'
import type { PortFacts } from './facts.ts'

export async function gatherPorts({ bind, bindBinary, bindKafka }: Settings): Promise<PortFacts[]> {
  const addresses: (readonly [PortFacts['flag'], string])[] = [['--bind', bind]]
  if (bindBinary !== null) addresses.push(['--bind-binary', bindBinary])
  for (const { address } of kafkaListenersOf(bindKafka)) addresses.push(['--bind-kafka', address])
  const facts: PortFacts[] = []
  for (const [flag, address] of addresses) facts.push(await tryAddress(flag, address))
  return facts
}

async function tryAddress(flag: PortFacts['flag'], address: string): Promise<PortFacts> {
  const reading = parseAddress(address)
  if (!reading.ok) return { flag, address, problem: reading.problem }
  return { flag, address, problem: await tryListen(reading.value) }
}

function tryListen(address: { readonly host: string; readonly port: number }): Promise<string | null> {
  return new Promise(resolve => {
    const server = createServer()
    server.once('error', error => resolve('code' in error ? String(error.code) : error.message))
    server.listen({ ...address, exclusive: true }, () => server.close(() => resolve(null)))
  })
}
