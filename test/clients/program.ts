/**
 * A client of another language: a program that carries out one check, and ends. It is given the name of the check and, as JSON,
 * the stage; exit code 0 says that it can, what it wrote to stderr why not.
 */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import {
  checkNames,
  newTopic,
  type Check,
  type CheckName,
  type ClientStage,
  type KafkaClientUnderTest
} from './client.ts'

const run = promisify(execFile)

/** A JVM takes seconds to start, a rebalance some more. */
const CHECK_TIMEOUT_MS = 90_000

/** What a program is told, as JSON in its last argument. */
interface ProgramStage {
  /** host:port of the Kafka listeners; the guarded one wants SASL. */
  readonly open: string
  readonly guarded: string
  /** Base URL of the open broker's HTTP API, to see what the broker itself makes of it. */
  readonly http: string
  readonly user: string
  readonly password: string
  /** A name for a topic that nobody else has; it does not exist yet. */
  readonly topic: string
}

function told({ open, guarded, keyId, secret }: ClientStage): ProgramStage {
  const topic = newTopic()
  return { open: open.kafka, guarded: guarded.kafka, http: open.url, user: keyId, password: secret, topic }
}

/** @param command program and arguments before the name of the check. @returns the checks that it has. */
export function programChecks(
  command: readonly [string, ...string[]],
  names: readonly CheckName[]
): Partial<Record<CheckName, Check>> {
  return Object.fromEntries(names.map(name => [name, stage => carryOut(command, name, told(stage))]))
}

function carryOut([program, ...before]: readonly [string, ...string[]], name: CheckName, stage: ProgramStage) {
  return new Promise<void>((resolve, reject) => {
    const args = [...before, name, JSON.stringify(stage)]
    execFile(program, args, { timeout: CHECK_TIMEOUT_MS }, (error, stdout, stderr) => {
      if (error === null) resolve()
      else reject(new Error(`${stderr}${stdout}`.slice(-4_000) || error.message))
    })
  })
}

/** A client whose program is compiled once, and has all checks. */
interface CompiledClient {
  readonly name: string
  /** Its folder below programs/. */
  readonly sources: string
  /** Where its version stands there, and what finds it. */
  readonly manifest: string
  readonly version: RegExp
  /** @param folder where the program is to be. */
  readonly build: (folder: string) => readonly [compiler: string, ...args: string[]]
  readonly buildTimeoutMs: number
  /** Of the program, below that folder. */
  readonly program: string
}

/** The checks begin when it is prepared, and find the command then. */
export function compiledClient(client: CompiledClient): KafkaClientUnderTest {
  const command: [string, ...string[]] = ['']
  const sources = fileURLToPath(new URL(`programs/${client.sources}`, import.meta.url))
  return {
    name: client.name,
    isExtra: true,
    async prepare(folder) {
      const [compiler, ...args] = client.build(folder)
      try {
        await run(compiler, args, { cwd: sources, timeout: client.buildTimeoutMs })
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
        throw error
      }
      command[0] = join(folder, client.program)
      return client.version.exec(readFileSync(join(sources, client.manifest), 'utf8'))?.[1] ?? 'of an unknown version'
    },
    checks: programChecks(command, checkNames)
  }
}
