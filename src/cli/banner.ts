/** The words at the start of a broker, for people. Pure. */
import type { Settings } from '../config/settings.ts'
import { defaultBroker } from './common-options.ts'
import type { RunningServer } from './running-server.ts'

const engines = { uws: 'uWebSockets.js', node: 'node:http' } as const

function durabilityWords({ flushEveryRecords }: Settings): string {
  if (flushEveryRecords === 1) return 'a produce is answered after its records are synced to disk'
  return `synced every ${flushEveryRecords} records or --flush-interval: a power cut may lose answered records`
}

function accessWords({ auth, allowRemoteUnauthenticated }: Settings): string {
  if (auth === 'required') return 'every request needs an API key'
  const who = allowRemoteUnauthenticated ? 'EVERYONE who reaches these addresses' : 'everyone on this machine'
  return `disabled: ${who} may read, write and delete`
}

/** Addresses, data directory, durability, access, and the command to try next. Ends with a newline. */
export function formatBanner(server: RunningServer, settings: Settings, version: string): string {
  const broker = `http://${server.httpAddress}`
  const option = broker === defaultBroker ? '' : ` --broker ${broker}`
  const rows = [
    ['HTTP', `${broker} (${engines[server.engine]})`],
    [
      'binary',
      server.binaryAddress === null
        ? 'off (--bind-binary 127.0.0.1:9001 turns it on)'
        : `${server.binaryAddress} (ES01)`
    ],
    ['data', `${server.dataDir}${server.firstStart ? ' (new)' : ''}, ${server.shards} shard(s)`],
    ['durability', durabilityWords(settings)],
    ['auth', accessWords(settings)],
    ['next', `npx millrace topic create --name orders --partitions 3${option}`]
  ]
  const lines = rows.map(([name = '', words = '']) => `  ${name.padEnd(11)}${words}`)
  return `\nMillrace ${version} is ready.\n${lines.join('\n')}\n\n`
}
