/**
 * Apache Kafka's jars, and programs out of them. Maven fetches the jars at the first run of a machine. Main thread; every
 * program is a process of its own.
 */
import { execFile, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { mavenClassPath } from '../maven.ts'

export const KAFKA_VERSION = '4.4.0'

/** Says on stderr what goes wrong: without a logger Kafka's programs are silent. */
const logPrinter = { groupId: 'org.slf4j', artifactId: 'slf4j-simple', version: '1.7.36' }

/** What Kafka's start scripts give the virtual machine, without the files that they log to. */
const scriptFlags = [
  '-server',
  '-XX:+UseG1GC',
  '-XX:MaxGCPauseMillis=20',
  '-XX:InitiatingHeapOccupancyPercent=35',
  '-XX:+ExplicitGCInvokesConcurrent',
  '-XX:MaxInlineLevel=15',
  '-Djava.awt.headless=true',
  '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn'
]
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024
/** Of what a program says when it fails. */
const SHOWN_CHARACTERS_MAX = 2000

/** @throws Error that says what is missing. */
export function requireJava(): void {
  for (const [command, flag] of [
    ['java', '-version'],
    ['mvn', '-version']
  ] as const) {
    const { error, status } = spawnSync(command, [flag], { stdio: 'ignore' })
    if (error === undefined && status === 0) continue
    throw new Error(`the scenario kafka needs a JDK (17 or later) and Maven: '${command}' could not be run`)
  }
}

/** Class path of artifacts of Kafka, with a logger. @param directory where Maven's files may lie. */
export function kafkaClassPath(directory: string, ...artifactIds: readonly string[]): Promise<string> {
  const kafka = artifactIds.map(artifactId => ({ groupId: 'org.apache.kafka', artifactId, version: KAFKA_VERSION }))
  return mavenClassPath(directory, ...kafka, logPrinter)
}

/** Arguments of `java` for one of Kafka's programs. */
export function javaArguments(classPath: string, flags: readonly string[], program: readonly string[]): string[] {
  return [...scriptFlags, ...flags, '-cp', classPath, ...program]
}

/** Runs Kafka's programs one at a time. */
export class JavaPrograms {
  readonly classPath: string
  #current: ChildProcess | null = null

  constructor(classPath: string) {
    this.classPath = classPath
  }

  /** @param program main class and its arguments. @returns what it printed. @throws Error with its words if it fails. */
  run(program: readonly string[], timeoutMs: number): Promise<string> {
    const options = { timeout: timeoutMs, killSignal: 'SIGKILL', maxBuffer: OUTPUT_BYTES_MAX } as const
    return new Promise((resolve, reject) => {
      this.#current = execFile(
        'java',
        javaArguments(this.classPath, ['-Xmx512M'], program),
        options,
        (error, stdout, stderr) => {
          this.#current = null
          if (error === null) return resolve(stdout)
          const words = `${stdout}${stderr}`.slice(-SHOWN_CHARACTERS_MAX)
          reject(new Error(`${program[0]} ended with ${error.signal ?? `code ${error.code}`}\n${words}`))
        }
      )
    })
  }

  /** Ends the program that runs, if one does. */
  kill(): Promise<void> {
    this.#current?.kill('SIGKILL')
    return Promise.resolve()
  }
}
