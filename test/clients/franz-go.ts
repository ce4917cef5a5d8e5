/** franz-go: newest versions of every API, from Go. Needs Go, which fetches its modules. The checks are in programs/franz-go. */
import { join } from 'node:path'
import type { KafkaClientUnderTest } from './client.ts'
import { compiledClient } from './program.ts'

/** A first build fetches the modules. */
const BUILD_TIMEOUT_MS = 600_000
const program = 'checks'

/** Not built before it is prepared. */
export function franzGoClient(): KafkaClientUnderTest {
  return compiledClient({
    name: 'franz-go',
    sources: 'franz-go',
    manifest: 'go.mod',
    version: /franz-go v(\S+)/,
    build: folder => ['go', 'build', '-o', join(folder, program), '.'],
    buildTimeoutMs: BUILD_TIMEOUT_MS,
    program
  })
}
