/** Clients of Python: each is installed into an environment of its own. Their checks are in programs/python. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { checkNames, type KafkaClientUnderTest } from './client.ts'
import { programChecks } from './program.ts'

const run = promisify(execFile)
const INSTALL_TIMEOUT_MS = 300_000

interface PythonClient {
  /** Of the client, and of its program. */
  readonly name: string
  /** What pip is asked for. */
  readonly packages: readonly string[]
  /** Python that prints its version. */
  readonly printVersion: string
}

/** The checks begin when it is prepared, and find the command then. -B: nothing compiled is left beside the program. */
function pythonClient({ name, packages, printVersion }: PythonClient): KafkaClientUnderTest {
  const command: [string, ...string[]] = [
    '',
    '-B',
    fileURLToPath(new URL(`programs/python/${name}.py`, import.meta.url))
  ]
  return {
    name,
    isExtra: true,
    async prepare(folder) {
      try {
        await run('python3', ['-m', 'venv', folder])
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
        throw error
      }
      const python = join(folder, 'bin', 'python')
      await run(python, ['-m', 'pip', 'install', '--quiet', ...packages], { timeout: INSTALL_TIMEOUT_MS })
      command[0] = python
      return (await run(python, ['-c', printVersion])).stdout.trim()
    },
    checks: programChecks(command, checkNames)
  }
}

/** confluent-kafka, which is librdkafka, newer than that of kcat. */
export function confluentClient(): KafkaClientUnderTest {
  return pythonClient({
    name: 'confluent-kafka',
    packages: ['confluent-kafka==2.16.1'],
    printVersion: 'import confluent_kafka as c; print(f"{c.version()}, librdkafka {c.libversion()[0]}")'
  })
}

/** kafka-python: a client that owes nothing to librdkafka or Java. */
export function kafkaPythonClient(): KafkaClientUnderTest {
  return pythonClient({
    name: 'kafka-python',
    packages: ['kafka-python[snappy,lz4,zstd]==3.0.12'],
    printVersion: 'import kafka; print(kafka.__version__)'
  })
}
