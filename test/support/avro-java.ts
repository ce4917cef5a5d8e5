/**
 * Apache Avro's own SchemaCompatibility, for the test that asks it the same questions as our rules. It needs a JDK (it runs a
 * program from its source) and Maven, which fetches the jars by their coordinates into its own repository.
 */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { mavenClassPath } from '../../native-free-bench/maven.ts'

const run = promisify(execFile)

const avro = { groupId: 'org.apache.avro', artifactId: 'avro', version: '1.12.0' }
const RUN_TIMEOUT_MS = 300_000
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024

/** Reads [[reader, writer], …] from the file and prints a line per pair. */
const program = `import com.fasterxml.jackson.databind.*;
import java.io.File;
import org.apache.avro.*;

public class Compatible {
  public static void main(String[] arguments) throws Exception {
    StringBuilder answers = new StringBuilder();
    for (JsonNode pair : new ObjectMapper().readTree(new File(arguments[0]))) answers.append(answer(pair)).append('\\n');
    System.out.print(answers);
  }

  private static String answer(JsonNode pair) {
    try {
      Schema reader = new Schema.Parser().parse(pair.get(0).asText());
      Schema writer = new Schema.Parser().parse(pair.get(1).asText());
      return SchemaCompatibility.checkReaderWriterCompatibility(reader, writer).getType().toString();
    } catch (AvroRuntimeException refusal) {
      return "REFUSED " + refusal.getMessage().replace('\\n', ' ');
    }
  }
}
`

/** Why the test with Avro's own checker is not run; false: it is. It is asked for, because it fetches. */
export const avroJavaSkip: string | false =
  process.env['MILLRACE_AVRO_JAVA'] === '1' || process.env['MILLRACE_LONG'] === '1'
    ? false
    : 'needs a JDK, Maven and jars from its repository: set MILLRACE_AVRO_JAVA=1'

/** What Avro says of each [reader, writer]: `COMPATIBLE`, `INCOMPATIBLE`, or `REFUSED` and why. */
export async function askAvroJava(pairs: readonly (readonly [string, string])[]): Promise<string[]> {
  const directory = mkdtempSync(join(tmpdir(), 'millrace-avro-java-'))
  try {
    const path = (name: string): string => join(directory, name)
    writeFileSync(path('Compatible.java'), program)
    writeFileSync(path('pairs.json'), JSON.stringify(pairs))
    const classPath = await mavenClassPath(directory, avro)
    const options = { timeout: RUN_TIMEOUT_MS, maxBuffer: OUTPUT_BYTES_MAX }
    const { stdout } = await run('java', ['-cp', classPath, path('Compatible.java'), path('pairs.json')], options)
    return stdout.trimEnd().split('\n')
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
