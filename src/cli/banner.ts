/** The words at the start of a broker, for people. Pure. */
import type { Settings } from '../config/settings.ts'
import { defaultBroker } from './common-options.ts'
import type { RunningServer } from './running-server.ts'

const engines = { uws: 'uWebSockets.js', node: 'node:http' } as const

function durabilityWords({ flushEveryRecords }: Settings): string {
  if (flushEveryRecords === 1) return 'a produce is answered after its records are synced to disk'
  return `synced every ${flushEveryRecords} records or --flush-interval: a power cut may lose answered records`
}

/** Where the broker writes the secret of the first key (composition/access.ts). */
function firstKey(dataDir: string): string {
  return `${dataDir}/bootstrap.key`
}

function accessWords({ auth, allowRemoteUnauthenticated }: Settings, dataDir: string): string {
  if (auth === 'required') return `every request needs an API key; the first one was written to ${firstKey(dataDir)}`
  const who = allowRemoteUnauthenticated ? 'EVERYONE who reaches these addresses' : 'everyone on this machine'
  return `disabled: ${who} may read, write and delete`
}

function tlsWords(tls: RunningServer['tls']): string {
  if (tls === null) return 'off: what is sent can be read on the way (--tls-cert and --tls-key turn it on)'
  return `on, with a certificate until ${new Date(tls.notAfterMs).toISOString().slice(0, 10)}`
}

function kafkaWords({ kafkaAddresses, tls }: RunningServer): string {
  if (kafkaAddresses.length === 0) return 'off (--bind-kafka 127.0.0.1:9092 turns it on)'
  return `${kafkaAddresses.join(', ')} (bootstrap.servers${tls === null ? '' : ', over TLS'})`
}

/** The address to name on this machine: where the broker listens on all of them, loopback, which needs no --allowed-host. */
function localAddress(address: string): string {
  return address.replace(/^0\.0\.0\.0(?=:\d+$)/, '127.0.0.1').replace(/^\[[0:]+\](?=:\d+$)/, '[::1]')
}

/** What a client command must be told: where the broker is, whom to trust if no authority vouches for it, and a key. */
function clientOptions({ tls, dataDir }: RunningServer, { tlsCert, auth }: Settings, broker: string): string {
  return [
    broker === defaultBroker ? '' : ` --broker ${broker}`,
    tls?.isSelfSigned === true ? ` --tls-ca ${tlsCert}` : '',
    auth === 'required' ? ` --auth-file ${firstKey(dataDir)}` : ''
  ].join('')
}

/** Addresses, data directory, durability, access, and the command to try next. Ends with a newline. */
export function formatBanner(server: RunningServer, settings: Settings, version: string): string {
  const scheme = server.tls === null ? 'http' : 'https'
  const broker = `${scheme}://${localAddress(server.httpAddress)}`
  const rows = [
    [server.tls === null ? 'HTTP' : 'HTTPS', `${scheme}://${server.httpAddress} (${engines[server.engine]})`],
    [
      'binary',
      server.binaryAddress === null
        ? 'off (--bind-binary 127.0.0.1:9001 turns it on)'
        : `${server.binaryAddress} (ES01${server.tls === null ? '' : ' over TLS'})`
    ],
    ['Kafka', kafkaWords(server)],
    ['data', `${server.dataDir}${server.firstStart ? ' (new)' : ''}, ${server.shards} shard(s)`],
    ['durability', durabilityWords(settings)],
    ['auth', accessWords(settings, server.dataDir)],
    ['TLS', tlsWords(server.tls)],
    ['next', `npx millrace topic create --name orders --partitions 2${clientOptions(server, settings, broker)}`]
  ]
  const lines = rows.map(([name = '', words = '']) => `  ${name.padEnd(11)}${words}`)
  return `\nMillrace ${version} is ready.\n${lines.join('\n')}\n\n`
}
