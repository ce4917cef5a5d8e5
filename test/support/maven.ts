/**
 * Jars for tests that ask the Java original. Maven fetches them by their coordinates into its own repository; this only
 * learns where they are.
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

/** The class path of an artifact with all that it needs. @param directory where `pom.xml` and `classpath.txt` may lie. */
export async function mavenClassPath(directory: string, { groupId, artifactId, version }: Artifact): Promise<string> {
  const [project, classPath] = [join(directory, 'pom.xml'), join(directory, 'classpath.txt')]
  writeFileSync(
    project,
    `<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>millrace.test</groupId>
  <artifactId>jars</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>${groupId}</groupId>
      <artifactId>${artifactId}</artifactId>
      <version>${version}</version>
    </dependency>
  </dependencies>
</project>
`
  )
  const goal = ['dependency:build-classpath', `-Dmdep.outputFile=${classPath}`]
  await run('mvn', ['-q', '-B', '-f', project, ...goal], { timeout: FETCH_TIMEOUT_MS })
  return readFileSync(classPath, 'utf8').trim()
}
