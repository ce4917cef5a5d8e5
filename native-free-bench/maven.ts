/**
 * Jars for what is held against the Java original, here and in tests. Maven fetches them by their coordinates into its own
 * repository; this only learns where they are. Main thread.
 */
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** A first run fetches tens of MB. */
const FETCH_TIMEOUT_MS = 600_000

export interface Artifact {
  readonly groupId: string
  readonly artifactId: string
  readonly version: string
}

/** The class path of artifacts with all that they need. @param directory where `pom.xml` and `classpath.txt` may lie. */
export async function mavenClassPath(directory: string, ...artifacts: readonly Artifact[]): Promise<string> {
  const [project, classPath] = [join(directory, 'pom.xml'), join(directory, 'classpath.txt')]
  writeFileSync(
    project,
    `<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>millrace.jars</groupId>
  <artifactId>jars</artifactId>
  <version>1</version>
  <dependencies>
${artifacts.map(dependency).join('')}  </dependencies>
</project>
`
  )
  const goal = ['dependency:build-classpath', `-Dmdep.outputFile=${classPath}`]
  await run('mvn', ['-q', '-B', '-f', project, ...goal], { timeout: FETCH_TIMEOUT_MS })
  return readFileSync(classPath, 'utf8').trim()
}

function dependency({ groupId, artifactId, version }: Artifact): string {
  return `    <dependency>
      <groupId>${groupId}</groupId>
      <artifactId>${artifactId}</artifactId>
      <version>${version}</version>
    </dependency>
`
}
