/**
 * A client of another language: a program that carries out one check, and ends. It is given the name of the check and, as JSON,
 * the stage; exit code 0 says that it can, what it wrote to stderr why not.
 */
import { execFile } from 'node:child_process'
import { newTopic, type Check, type CheckName, type ClientStage } from './client.ts'

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
