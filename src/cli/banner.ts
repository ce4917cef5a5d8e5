/** The words at the start of a broker, for people. Pure. */
import type { Settings } from '../config/settings.ts'
import { defaultBroker } from './common-options.ts'
import type { RunningServer } from './running-server.ts'

const engines = { uws: 'uWebSockets.js', node: 'node:http' } as const

function durabilityWords({ flushEveryRecords }: Settings): string {
  if (flushEveryRecords === 1) return 'a produce is answered after its records are synced to disk'
  return `synced every ${flushEveryRecords} records or --flush-interval: a power cut may lose answered records`
}

function accessWords({ auth, allowRemoteUnauthenticated }: Settings, dataDir: string): string {
  if (auth === 'required') return `every request needs an API key; the first one is in ${dataDir}/bootstrap.key`
  const who = allowRemoteUnauthenticated ? 'EVERYONE who reaches these addresses' : 'everyone on this machine'
  return `disabled: ${who} may read, write and delete`
}

function tlsWords(tls: RunningServer['tls']): string {
  if (tls === null) return 'off: what is sent can be read on the way (--tls-cert and --tls-key turn it on)'
  return `on, with a certificate until ${new Date(tls.notAfterMs).toISOString().slice(0, 10)}`
}

/** What a client needs to trust a certificate that no authority has signed. */
function trustOption({ tls }: RunningServer, { tlsCert }: Settings): string {
  return tls?.isSelfSigned === true ? ` --tls-ca ${tlsCert}` : ''
}

/** Addresses, data directory, durability, access, and the command to try next. Ends with a newline. */
export function formatBanner(server: RunningServer, settings: Settings, version: string): string {
  const broker = `${server.tls === null ? 'http' : 'https'}://${server.httpAddress}`
  const option = broker === defaultBroker ? '' : ` --broker ${broker}`
  const rows = [
    [server.tls === null ? 'HTTP' : 'HTTPS', `${broker} (${engines[server.engine]})`],
    [
      'binary',
      server.binaryAddress === null
        ? 'off (--bind-binary 127.0.0.1:9001 turns it on)'
        : `${server.binaryAddress} (ES01${server.tls === null ? '' : ' over TLS'})`
    ],
    ['data', `${server.dataDir}${server.firstStart ? ' (new)' : ''}, ${server.shards} shard(s)`],
    ['durability', durabilityWords(settings)],
    ['auth', accessWords(settings, server.dataDir)],
    ['TLS', tlsWords(server.tls)],
    ['next', `npx millrace topic create --name orders --partitions 3${option}${trustOption(server, settings)}`]
  ]
  const lines = rows.map(([name = '', words = '']) => `  ${name.padEnd(11)}${words}`)
  return `\nMillrace ${version} is ready.\n${lines.join('\n')}\n\n`
}
