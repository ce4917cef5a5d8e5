/**
 * The command lines that come with Apache Kafka (`kafka-topics` and the others), which administrators know. Needs a JDK and
 * Maven; each command is the class that its script of that name starts.
 */
import assert from 'node:assert/strict'
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { KAFKA_VERSION } from '../../native-free-bench/kafka/java.ts'
import { waitFor } from '../support/broker.ts'
import { HttpApi } from '../support/http-api.ts'
import { newTopic, type Check, type ClientStage, type KafkaClientUnderTest } from './client.ts'
import { findClassPath, javaFlags } from './java.ts'

const PARTITIONS = 4
/** Until a group is as it should be; each look starts a JVM. */
const LOOKING_MS = 60_000
const COMMAND_TIMEOUT_MS = 60_000
const value = 'a text that is worth compressing '.repeat(50).trim()

const classes = {
  topics: 'TopicCommand',
  configs: 'ConfigCommand',
  groups: 'consumer.group.ConsumerGroupCommand',
  'delete-records': 'DeleteRecordsCommand',
  'get-offsets': 'GetOffsetShell',
  'console-producer': 'ConsoleProducer',
  'console-consumer': 'consumer.ConsoleConsumer',
  'producer-perf-test': 'ProducerPerformance',
  'consumer-perf-test': 'ConsumerPerformance',
  cluster: 'ClusterTool',
  'broker-api-versions': 'BrokerApiVersionsCommand'
} as const
type Command = keyof typeof classes

/** The commands against one broker. */
class Tools {
  readonly #classPath: string
  readonly #folder: string
  readonly #address: string

  constructor(classPath: string, folder: string, address: string) {
    this.#classPath = classPath
    this.#folder = folder
    this.#address = address
  }

  start(command: Command, args: readonly string[]): ChildProcessWithoutNullStreams {
    const words = ['-Dorg.slf4j.simpleLogger.defaultLogLevel=warn', '-cp', this.#classPath]
    const tool = `org.apache.kafka.tools.${classes[command]}`
    const own =
      command === 'cluster' ? [...args.slice(0, 1), ...this.#server, ...args.slice(1)] : [...this.#server, ...args]
    return spawn('java', [...javaFlags, ...words, tool, ...own], { stdio: 'pipe', timeout: COMMAND_TIMEOUT_MS })
  }

  get #server(): string[] {
    return ['--bootstrap-server', this.#address]
  }

  /** Runs it to success, without anything that it warns of. @returns what it printed. */
  async run(command: Command, args: readonly string[], input = ''): Promise<string> {
    const child = this.start(command, args)
    // It may end before it has read all of it.
    child.stdin.on('error', () => undefined).end(input)
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
    assert.equal(child.exitCode, 0, `${command} ${args.join(' ')}: ${stderr}${stdout}`)
    checkWarnings(stderr)
    return stdout
  }

  /** A console consumer that stays until it is told to leave, and has nothing to warn of until then. */
  join(...args: readonly string[]): { leave: () => Promise<void> } {
    const child = this.start('console-consumer', args)
    child.stdout.resume()
    const ended = Promise.all([text(child.stderr), once(child, 'close')])
    const leave = async (): Promise<void> => {
      child.kill('SIGTERM')
      const [stderr] = await ended
      checkWarnings(stderr)
    }
    return { leave }
  }

  /** @returns the name of a file with that content, for a command to read. */
  file(name: string, content: string): string {
    const path = join(this.#folder, name)
    writeFileSync(path, content)
    return path
  }

  async topic(partitions = 1): Promise<string> {
    const topic = newTopic()
    await this.run('topics', ['--create', '--topic', topic, '--partitions', String(partitions)])
    return topic
  }

  produce(topic: string, lines: string, ...more: readonly string[]): Promise<string> {
    return this.run('console-producer', ['--topic', topic, ...more], lines)
  }

  consume(topic: string, count: number, ...more: readonly string[]): Promise<string> {
    return this.run('console-consumer', ['--topic', topic, '--max-messages', String(count), ...more])
  }

  /** Looks at the group until `isReached` holds of what is shown. */
  async until(group: string, shows: readonly string[], isReached: (shown: string) => boolean): Promise<void> {
    const look = async () => isReached(await this.run('groups', ['--describe', '--group', group, ...shows]))
    await waitFor(`what groups --describe shows of ${group}`, look, LOOKING_MS)
  }
}

function checkWarnings(stderr: string): void {
  assert.equal(/ (WARN|ERROR) .*/.exec(stderr)?.[0], undefined)
}

type ToolCheck = (tools: Tools, stage: ClientStage) => Promise<void>

/** Writes, and has the tools and the broker itself read it. */
function written(...options: readonly string[]): ToolCheck {
  return async (tools, { open }) => {
    const topic = await tools.topic()
    const keyed = ['--reader-property', 'parse.key=true', '--reader-property', 'key.separator=:']
    await tools.produce(topic, `key:${value}\n`, ...keyed, ...options)
    const shown = await tools.consume(topic, 1, '--from-beginning', '--formatter-property', 'print.key=true')
    assert.equal(shown, `key\t${value}\n`)
    const records = await new HttpApi(open.url).consumeAll(topic, 0)
    assert.deepEqual(
      records.map(record => record.value),
      [value]
    )
  }
}

async function createTopic(tools: Tools): Promise<void> {
  const topic = newTopic()
  const wanted = ['--create', '--topic', topic, '--partitions', '3', '--config', 'retention.ms=60000']
  await tools.run('topics', wanted)
  await tools.run('topics', [...wanted, '--if-not-exists'])
  assert.ok((await tools.run('topics', ['--list'])).split('\n').includes(topic))
  await tools.run('topics', ['--delete', '--topic', topic])
  assert.ok(!(await tools.run('topics', ['--list'])).split('\n').includes(topic))
}

async function createPartitions(tools: Tools): Promise<void> {
  const topic = await tools.topic()
  await tools.run('topics', ['--alter', '--topic', topic, '--partitions', String(PARTITIONS)])
  assert.match(await tools.run('topics', ['--describe', '--topic', topic]), /PartitionCount: 4/)
}

/** As the goals of speed are measured, with few records. */
async function measureSpeed(tools: Tools): Promise<void> {
  const topic = await tools.topic(PARTITIONS)
  const load = ['--num-records', '20000', '--record-size', '100', '--throughput', '-1']
  const properties = ['--command-property', 'acks=all', '--command-property', 'enable.idempotence=true']
  assert.match(await tools.run('producer-perf-test', ['--topic', topic, ...load, ...properties]), /20000 records sent/)
  const measured = await tools.run('consumer-perf-test', ['--topic', topic, '--num-records', '20000'])
  assert.equal(measured.trim().split('\n').at(-1)?.split(', ')[4], '20000')
}

async function writeLargeRecord(tools: Tools): Promise<void> {
  const topic = await tools.topic()
  const large = 'x'.repeat(1_000_000)
  await tools.produce(topic, `${large}\n`, '--command-property', 'max.request.size=2000000')
  assert.equal(await tools.consume(topic, 1, '--from-beginning'), `${large}\n`)
}

async function readFromTheMiddle(tools: Tools): Promise<void> {
  const topic = await tools.topic()
  await tools.produce(topic, 'one\ntwo\nthree\n')
  assert.equal(await tools.consume(topic, 2, '--partition', '0', '--offset', '1'), 'two\nthree\n')
}

async function findByTime(tools: Tools): Promise<void> {
  const topic = await tools.topic()
  await tools.produce(topic, 'one\n')
  const at = (time: string): Promise<string> => tools.run('get-offsets', ['--topic', topic, '--time', time])
  assert.equal(await at('1'), `${topic}:0:0\n`)
  assert.equal(await at('earliest'), `${topic}:0:0\n`)
  assert.equal(await at('latest'), `${topic}:0:1\n`)
  assert.equal(await at('max-timestamp'), `${topic}:0:0\n`)
}

/** How many of the group have so many partitions. */
const membersOf = (shown: string, partitions: number): number =>
  shown.split('\n').filter(line => new RegExp(`console-consumer +${partitions} *$`).test(line)).length

async function shareGroup(tools: Tools): Promise<void> {
  const topic = await tools.topic(PARTITIONS)
  const members = [tools.join('--topic', topic, '--group', topic), tools.join('--topic', topic, '--group', topic)]
  try {
    await tools.until(topic, ['--members'], shown => membersOf(shown, 2) === 2)
    assert.match(await tools.run('groups', ['--describe', '--group', topic, '--state']), / range +Stable +2/)
  } finally {
    await Promise.all(members.map(({ leave }) => leave()))
  }
  assert.match(await tools.run('groups', ['--describe', '--group', topic, '--state']), / Empty +0/)
}

async function rebalance(tools: Tools): Promise<void> {
  const topic = await tools.topic(PARTITIONS)
  const strategy = 'partition.assignment.strategy=org.apache.kafka.clients.consumer.CooperativeStickyAssignor'
  const group = ['--topic', topic, '--group', topic, '--command-property', strategy]
  const one = tools.join(...group)
  try {
    await tools.until(topic, ['--members'], shown => membersOf(shown, 4) === 1)
    const other = tools.join(...group)
    try {
      await tools.until(topic, ['--members'], shown => membersOf(shown, 2) === 2)
    } finally {
      await other.leave()
    }
    await tools.until(topic, ['--members'], shown => membersOf(shown, 4) === 1)
  } finally {
    await one.leave()
  }
}

async function commitAndResume(tools: Tools): Promise<void> {
  const topic = await tools.topic()
  const change = ['--group', topic, '--topic', topic]
  const next = (count: number): Promise<string> => tools.consume(topic, count, '--group', topic, '--from-beginning')
  await tools.produce(topic, 'one\ntwo\nthree\n')
  assert.equal(await next(2), 'one\ntwo\n')
  assert.match(await tools.run('groups', ['--describe', '--group', topic]), new RegExp(`${topic} +0 +2 +3 +1 `))
  assert.equal(await next(1), 'three\n')
  for (const to of [
    ['--to-earliest'],
    ['--to-offset', '1'],
    ['--shift-by', '1'],
    ['--to-datetime', '2000-01-01T00:00:00.000']
  ]) {
    await tools.run('groups', ['--reset-offsets', ...change, ...to, '--execute'])
  }
  assert.equal(await next(3), 'one\ntwo\nthree\n')
  await tools.run('groups', ['--delete-offsets', ...change])
  await tools.run('groups', ['--delete', '--group', topic])
  assert.ok(!(await tools.run('groups', ['--list'])).split('\n').includes(topic))
}

async function keepStaticMember(tools: Tools): Promise<void> {
  const topic = await tools.topic(PARTITIONS)
  const named = ['--group', topic, '--command-property', 'group.instance.id=the-one']
  const member = tools.join('--topic', topic, ...named)
  const isThere = (shown: string): boolean => / the-one .* 4 /.test(shown)
  try {
    await tools.until(topic, ['--members', '--verbose'], isThere)
  } finally {
    await member.leave()
  }
  // It has ended, and did not leave.
  assert.ok(isThere(await tools.run('groups', ['--describe', '--group', topic, '--members', '--verbose'])))
}

async function deleteRecords(tools: Tools): Promise<void> {
  const topic = await tools.topic()
  await tools.produce(topic, 'one\ntwo\nthree\n')
  const wanted = JSON.stringify({ partitions: [{ topic, partition: 0, offset: 2 }], version: 1 })
  const shown = await tools.run('delete-records', ['--offset-json-file', tools.file(`${topic}.json`, wanted)])
  assert.match(shown, new RegExp(`${topic}-0\\s+low_watermark: 2`))
  assert.equal(await tools.consume(topic, 1, '--from-beginning'), 'three\n')
}

async function describeAll(tools: Tools): Promise<void> {
  const topic = await tools.topic(2)
  assert.match(await tools.run('topics', ['--describe', '--topic', topic]), /PartitionCount: 2\tReplicationFactor: 1/)
  assert.match(await tools.run('configs', ['--describe', '--topic', topic, '--all']), /retention\.ms=-1/)
  assert.match(await tools.run('configs', ['--describe', '--broker', '1', '--all']), /=/)
  await tools.run('topics', ['--describe', '--under-replicated-partitions'])
  await tools.run('groups', ['--list', '--state'])
}

async function changeConfiguration(tools: Tools): Promise<void> {
  const topic = await tools.topic()
  await tools.run('configs', ['--alter', '--topic', topic, '--add-config', 'retention.ms=5000'])
  const show = (): Promise<string> => tools.run('configs', ['--describe', '--topic', topic])
  assert.match(await show(), /retention\.ms=5000/)
  await tools.run('configs', ['--alter', '--topic', topic, '--delete-config', 'retention.ms'])
  assert.doesNotMatch(await show(), /retention\.ms/)
}

/** Their settings are in a file. */
function login(mechanism: string, module: string): ToolCheck {
  return async (tools, { keyId, secret }) => {
    const credentials = `username="${keyId}" password="${secret}"`
    const settings = [
      'security.protocol=SASL_PLAINTEXT',
      `sasl.mechanism=${mechanism}`,
      `sasl.jaas.config=org.apache.kafka.common.security.${module} required ${credentials};`
    ]
    const logged = ['--command-config', tools.file(`${mechanism}.properties`, settings.join('\n'))]
    const topic = newTopic()
    await tools.run('topics', ['--create', '--topic', topic, ...logged])
    await tools.produce(topic, 'one\n', ...logged)
    assert.equal(await tools.consume(topic, 1, '--from-beginning', ...logged), 'one\n')
  }
}

async function connect(tools: Tools): Promise<void> {
  assert.match(await tools.run('cluster', ['cluster-id']), /Cluster ID: \S+/)
  assert.match(await tools.run('broker-api-versions', []), /Produce\(0\): 0 to 11/)
}

/** The checks begin when it is prepared, and find the class path then. */
export function kafkaToolsClient(): KafkaClientUnderTest {
  let place = { classPath: '', folder: '' }
  const using =
    (check: ToolCheck, isGuarded = false): Check =>
    stage =>
      check(new Tools(place.classPath, place.folder, (isGuarded ? stage.guarded : stage.open).kafka), stage)
  return {
    name: 'Kafka tools',
    isExtra: true,
    async prepare(folder) {
      const classPath = await findClassPath(folder, 'kafka-tools')
      if (classPath === null) return null
      place = { classPath, folder }
      return KAFKA_VERSION
    },
    checks: {
      connect: using(connect),
      'create topic': using(createTopic),
      'create partitions': using(createPartitions),
      'produce and fetch': using(written()),
      gzip: using(written('--compression-codec', 'gzip')),
      snappy: using(written('--compression-codec', 'snappy')),
      lz4: using(written('--compression-codec', 'lz4')),
      zstd: using(written('--compression-codec', 'zstd')),
      idempotent: using(measureSpeed),
      'record of 1 MB': using(writeLargeRecord),
      'from a middle offset': using(readFromTheMiddle),
      'by time': using(findByTime),
      'group of two': using(shareGroup),
      rebalance: using(rebalance),
      'commit and resume': using(commitAndResume),
      'static member': using(keepStaticMember),
      'delete records': using(deleteRecords),
      describe: using(describeAll),
      'change configuration': using(changeConfiguration),
      'SASL PLAIN': using(login('PLAIN', 'plain.PlainLoginModule'), true),
      'SASL SCRAM-SHA-256': using(login('SCRAM-SHA-256', 'scram.ScramLoginModule'), true),
      'SASL SCRAM-SHA-512': using(login('SCRAM-SHA-512', 'scram.ScramLoginModule'), true)
    }
  }
}
