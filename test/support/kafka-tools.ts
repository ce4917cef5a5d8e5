/**
 * Apache Kafka's own DumpLogSegments, for the tests that show that Kafka's tools read our files. It needs Java and Maven;
 * `mvn` fetches the jars by their coordinates into its own repository, and the class path is kept for the next run.
 */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { mavenClassPath } from '../../native-free-bench/maven.ts'

const run = promisify(execFile)

const KAFKA_VERSION = '3.9.1'
const kafka = { groupId: 'org.apache.kafka', artifactId: 'kafka_2.13', version: KAFKA_VERSION }
const DUMP_TIMEOUT_MS = 120_000
const OUTPUT_BYTES_MAX = 256 * 1024 * 1024

/** Why the tests with Kafka's tools are not run; false: they are. They are asked for, because they fetch. */
export const kafkaToolsSkip: string | false =
  process.env['MILLRACE_KAFKA_TOOLS'] === '1' || process.env['MILLRACE_LONG'] === '1'
    ? false
    : 'needs Java, Maven and jars from its repository: set MILLRACE_KAFKA_TOOLS=1'

/** Class path of Kafka's tools; fetched at the first call of a machine. */
export async function kafkaClassPath(): Promise<string> {
  const directory = join(tmpdir(), `millrace-kafka-tools-${KAFKA_VERSION}`)
  const kept = join(directory, 'classpath.txt')
  if (existsSync(kept)) {
    const classPath = readFileSync(kept, 'utf8').trim()
    if (classPath !== '' && classPath.split(delimiter).every(jar => existsSync(jar))) return classPath
  }
  mkdirSync(directory, { recursive: true })
  return mavenClassPath(directory, kafka)
}

export interface Dump {
  readonly lines: readonly string[]
  /** What the tool says on stderr, where all its findings about index files and offsets go; without notes on logging. */
  readonly complaints: readonly string[]
}

/** Runs `kafka.tools.DumpLogSegments --files …` with further arguments; rejects if it fails. */
export async function dumpLogSegments(files: readonly string[], ...further: readonly string[]): Promise<Dump> {
  const classPath = await kafkaClassPath()
  const { stdout, stderr } = await run(
    'java',
    ['-cp', classPath, 'kafka.tools.DumpLogSegments', '--files', files.join(','), ...further],
    { timeout: DUMP_TIMEOUT_MS, maxBuffer: OUTPUT_BYTES_MAX }
  )
  const linesOf = (text: string): string[] => text.split('\n').filter(line => line !== '')
  return { lines: linesOf(stdout), complaints: linesOf(stderr).filter(line => !/^(SLF4J|log4j):/.test(line)) }
}
