/**
 * Apache Kafka's own library, kafka-clients: newest versions of every API. Needs a JDK and Maven, which fetches the jars by
 * their coordinates into its own repository. The checks are in programs/JavaClient.java.
 */
import { execFile } from 'node:child_process'
import { delimiter } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { KAFKA_VERSION, kafkaClassPath } from '../../native-free-bench/kafka/java.ts'
import { checkNames, type KafkaClientUnderTest } from './client.ts'
import { programChecks } from './program.ts'

const run = promisify(execFile)
const sources = ['JavaClient.java', 'Checking.java'].map(name =>
  fileURLToPath(new URL(`programs/${name}`, import.meta.url))
)

/** Starts sooner, and takes less of a small machine. */
export const javaFlags = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-Xmx512m'] as const

/** Class path of an artifact of Kafka, with something that prints its log to stderr. @returns null: no JDK or no Maven here. */
export async function findClassPath(folder: string, artifactId: string): Promise<string | null> {
  try {
    await run('javac', ['-version'])
    return await kafkaClassPath(folder, artifactId)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/** The checks begin when it is prepared, and find the command then. */
export function javaClient(): KafkaClientUnderTest {
  const command: [string, ...string[]] = ['java', ...javaFlags]
  return {
    name: 'Java',
    isExtra: true,
    async prepare(folder) {
      const classPath = await findClassPath(folder, 'kafka-clients')
      if (classPath === null) return null
      await run('javac', ['-cp', classPath, '-d', folder, ...sources])
      command.push('-cp', [folder, classPath].join(delimiter), 'JavaClient')
      return KAFKA_VERSION
    },
    checks: programChecks(command, checkNames)
  }
}
