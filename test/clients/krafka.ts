/**
 * krafka: a client in Rust without a C library. Needs Rust, and builds for minutes, so its checks are one program. They are in
 * programs/krafka.
 */
import type { KafkaClientUnderTest } from './client.ts'
import { compiledClient } from './program.ts'

/** All of its crates are compiled, on two cores. */
const BUILD_TIMEOUT_MS = 1_200_000

/** Not built before it is prepared. */
export function krafkaClient(): KafkaClientUnderTest {
  return compiledClient({
    name: 'krafka',
    sources: 'krafka',
    manifest: 'Cargo.toml',
    version: /krafka = .*"=([\d.]+)"/,
    build: folder => ['cargo', 'build', '--locked', '--target-dir', folder],
    buildTimeoutMs: BUILD_TIMEOUT_MS,
    program: 'debug/checks'
  })
}
