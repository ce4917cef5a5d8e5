/**
 * Apache Kafka's own client library, for the tests that hold our tables and bytes against it. It needs a JDK (it runs a
 * program from its source) and Maven, which fetches the jars by their coordinates into its own repository.
 */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { mavenClassPath } from '../../native-free-bench/maven.ts'

const run = promisify(execFile)

/** The last release that has every version that is advertised: 4.0 dropped the oldest. */
const clients = { groupId: 'org.apache.kafka', artifactId: 'kafka-clients', version: '3.9.1' }
const RUN_TIMEOUT_MS = 300_000
const OUTPUT_BYTES_MAX = 256 * 1024 * 1024

/**
 * definitions NAME …       prints the published definitions of messages, each before a byte 0.
 * errors                   prints name, code and whether it is retriable, a line each.
 * place BROKER TOPIC FILE  sends a record for each line, a key in hex, and prints the partition that each went to.
 * again FILE               reads lines "key request|response version hex", and prints what it writes after it has read that.
 */
const program = `import java.io.*;
import java.nio.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.message.*;
import org.apache.kafka.common.protocol.*;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class Ask {
  public static void main(String[] arguments) throws Exception {
    PrintStream out = new PrintStream(new BufferedOutputStream(System.out), false, "UTF-8");
    if (arguments[0].equals("definitions")) for (int i = 1; i < arguments.length; i++) {
      try (InputStream in = Ask.class.getResourceAsStream("/common/message/" + arguments[i] + ".json")) { in.transferTo(out); }
      out.write(0);
    }
    if (arguments[0].equals("errors")) {
      for (Errors error : Errors.values()) {
        boolean retriable = error.exception() instanceof org.apache.kafka.common.errors.RetriableException;
        out.println(error.name() + " " + error.code() + " " + retriable);
      }
    }
    if (arguments[0].equals("again")) for (String line : Files.readAllLines(Path.of(arguments[1]))) out.println(again(line.split(" ", -1)));
    if (arguments[0].equals("place")) place(arguments[1], arguments[2], Files.readAllLines(Path.of(arguments[3])), out);
    out.flush();
  }

  private static void place(String broker, String topic, List<String> keys, PrintStream out) throws Exception {
    Map<String, Object> settings = Map.of("bootstrap.servers", broker, "linger.ms", 5);
    List<Future<RecordMetadata>> sent = new ArrayList<>();
    ByteArraySerializer asItIs = new ByteArraySerializer();
    try (Producer<byte[], byte[]> producer = new KafkaProducer<>(settings, asItIs, asItIs)) {
      for (String key : keys) sent.add(producer.send(new ProducerRecord<>(topic, HexFormat.of().parseHex(key), new byte[0])));
      producer.flush();
    }
    for (Future<RecordMetadata> record : sent) out.println(record.get().partition());
  }

  private static String again(String[] parts) {
    try {
      ApiMessageType type = ApiMessageType.fromApiKey(Short.parseShort(parts[0]));
      short version = Short.parseShort(parts[2]);
      ApiMessage message = parts[1].equals("request") ? type.newRequest() : type.newResponse();
      ByteBuffer bytes = ByteBuffer.wrap(HexFormat.of().parseHex(parts[3]));
      message.read(new ByteBufferAccessor(bytes), version);
      if (bytes.remaining() > 0) return bytes.remaining() + " bytes are left";
      ObjectSerializationCache cache = new ObjectSerializationCache();
      ByteBuffer written = ByteBuffer.allocate(message.size(cache, version));
      message.write(new ByteBufferAccessor(written), cache, version);
      return HexFormat.of().formatHex(written.array());
    } catch (Throwable problem) {
      return problem.toString().replace('\\n', ' ');
    }
  }
}
`

/** Why the tests with Kafka's library are not run; false: they are. They are asked for, because they fetch. */
export const kafkaJavaSkip: string | false =
  process.env['MILLRACE_KAFKA_JAVA'] === '1' || process.env['MILLRACE_LONG'] === '1'
    ? false
    : 'needs a JDK, Maven and jars from its repository: set MILLRACE_KAFKA_JAVA=1'

/** Kafka's library, fetched and ready to be asked. */
export class KafkaJava {
  readonly #directory: string
  readonly #classPath: string

  private constructor(directory: string, classPath: string) {
    this.#directory = directory
    this.#classPath = classPath
  }

  static async open(): Promise<KafkaJava> {
    const directory = mkdtempSync(join(tmpdir(), 'millrace-kafka-java-'))
    writeFileSync(join(directory, 'Ask.java'), program)
    return new KafkaJava(directory, await mavenClassPath(directory, clients))
  }

  close(): void {
    rmSync(this.#directory, { recursive: true, force: true })
  }

  /** The published definitions of these messages, comments removed. */
  async definitions(names: readonly string[]): Promise<unknown[]> {
    const texts = (await this.#ask('definitions', ...names)).split('\0').slice(0, -1)
    return texts.map(text => JSON.parse(text.replace(/(^|\s)\/\/ .*$/gm, '').replace(/^\s*\/\/$/gm, '')) as unknown)
  }

  /** Lines of name, code and `true` or `false`: retriable. */
  async errors(): Promise<string[]> {
    return (await this.#ask('errors')).trimEnd().split('\n')
  }

  /** What it writes after it has read each body, in hex; else what it complains of. @param lines "key request|response version hex". */
  async writeAgain(lines: readonly string[]): Promise<string[]> {
    const path = join(this.#directory, 'lines.txt')
    writeFileSync(path, lines.join('\n'))
    return (await this.#ask('again', path)).trimEnd().split('\n')
  }

  /** Sends a record for each key. @returns the partitions that its producer chose, in the order of the keys. */
  async place(broker: string, topic: string, keys: readonly Buffer[]): Promise<number[]> {
    const path = join(this.#directory, 'keys.txt')
    writeFileSync(path, keys.map(key => `${key.toString('hex')}\n`).join(''))
    return (await this.#ask('place', broker, topic, path)).trimEnd().split('\n').map(Number)
  }

  async #ask(...question: readonly string[]): Promise<string> {
    const options = { timeout: RUN_TIMEOUT_MS, maxBuffer: OUTPUT_BYTES_MAX }
    const arguments_ = ['-cp', this.#classPath, join(this.#directory, 'Ask.java'), ...question]
    return (await run('java', arguments_, options)).stdout
  }
}
