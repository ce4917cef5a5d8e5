/** kcat, over librdkafka: the command line that most people try first. Needs the program on the path. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { HttpApi } from '../support/http-api.ts'
import { threeRecords, topicOf, type Check, type KafkaClientUnderTest } from './client.ts'
import { groupChecks, staticMemberCheck, type Joining, type StaticMember } from './groups.ts'

const NO_COMMAND = 'it has no command for that'

interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

async function run(args: readonly string[], input = ''): Promise<Ended> {
  const child = spawn('kcat', args, { stdio: 'pipe' })
  const stdout: Buffer[] = []
  const stderr: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk))
  // It may end before it has read all of it.
  child.stdin.on('error', () => undefined)
  child.stdin.end(input)
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, stdout: Buffer.concat(stdout).toString(), stderr: Buffer.concat(stderr).toString() }
}

/** kcat with its addresses, to success. @returns what it printed. */
async function kcat(address: string, args: readonly string[], input = ''): Promise<string> {
  // Its own patience with metadata, of 5 s, is too short for a machine on which all tests run.
  const { code, stdout, stderr } = await run(['-b', address, '-m', '60', ...args], input)
  assert.equal(code, 0, stderr)
  return stdout
}

const consumed = (address: string, topic: string, ...more: readonly string[]): Promise<string> =>
  kcat(address, ['-C', '-t', topic, '-e', '-q', ...more])

/** Writes with these options and reads what was written. */
function roundTrip(...options: readonly string[]): Check {
  return async stage => {
    const topic = await topicOf(stage)
    const value = 'a text that is worth compressing '.repeat(50).trim()
    await kcat(stage.open.kafka, ['-P', '-t', topic, '-K', ':', ...options], `key:${value}\n`)
    assert.equal(await consumed(stage.open.kafka, topic, '-f', '%k=%s'), `key=${value}`)
    // And the broker itself understands what it was given.
    assert.deepEqual(
      (await new HttpApi(stage.open.url).consumeAll(topic, 0)).map(record => record.value),
      [value]
    )
  }
}

function login(mechanism: string): Check {
  return async ({ guarded, keyId, secret }) => {
    const sasl = { 'security.protocol': 'SASL_PLAINTEXT', 'sasl.mechanisms': mechanism, 'sasl.username': keyId }
    const options = Object.entries({ ...sasl, 'sasl.password': secret }).flatMap(([name, value]) => [
      '-X',
      `${name}=${value}`
    ])
    assert.match(await kcat(guarded.kafka, ['-L', ...options]), /1 brokers/)
  }
}

const writeLargeRecord: Check = async stage => {
  const topic = await topicOf(stage)
  const value = 'x'.repeat(1_000_000)
  await kcat(stage.open.kafka, ['-P', '-t', topic, '-X', 'message.max.bytes=2000000'], `${value}\n`)
  assert.equal(await consumed(stage.open.kafka, topic), `${value}\n`)
}

const readFromTheMiddle: Check = async stage => {
  const topic = await threeRecords(stage)
  assert.equal(await consumed(stage.open.kafka, topic, '-p', '0', '-o', '1'), 'two\nthree\n')
}

const findByTime: Check = async stage => {
  const topic = await threeRecords(stage)
  const [first] = await new HttpApi(stage.open.url).consumeAll(topic, 0)
  const time = first?.timestamp_ms ?? 0
  assert.match(await kcat(stage.open.kafka, ['-Q', '-t', `${topic}:0:${time}`]), /\[0\] offset 0/)
  assert.equal(await consumed(stage.open.kafka, topic, '-o', `s@${time}`), 'one\ntwo\nthree\n')
  assert.equal(await consumed(stage.open.kafka, topic, '-o', `s@${time + 3_600_000}`), '')
}

/** kcat -G, which says on stderr what it was given and what was taken from it. */
function join(
  { address, group, topic }: Joining,
  options: Readonly<Record<string, string>> = {}
): Promise<StaticMember> {
  const quick = { 'auto.offset.reset': 'earliest', 'heartbeat.interval.ms': '100', 'session.timeout.ms': '10000' }
  const settings = Object.entries({ ...quick, ...options }).flatMap(([name, value]) => ['-X', `${name}=${value}`])
  const child = spawn('kcat', ['-b', address, '-G', group, ...settings, '-u', '-f', '%p:%o:%s\n', topic])
  const messages: string[] = []
  let partitions: readonly number[] | null = null
  createInterface({ input: child.stdout }).on('line', line => void messages.push(line))
  createInterface({ input: child.stderr }).on('line', line => {
    const [, change, given = ''] = /rebalanced .*: (assigned|revoked): (.*)$/.exec(line) ?? []
    if (change === 'revoked') partitions = null
    if (change === 'assigned') partitions = [...given.matchAll(/\[(\d+)\]/g)].map(([, partition]) => Number(partition))
  })
  const ended = once(child, 'close')
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal)
    await ended
  }
  return Promise.resolve({
    messages,
    partitions: () => partitions,
    stop: () => end('SIGTERM'),
    vanish: () => end('SIGKILL')
  })
}

export const kcatClient: KafkaClientUnderTest = {
  name: 'kcat',
  async prepare() {
    try {
      const { stdout } = await run(['-V'])
      return (
        /Version (\S+).*librdkafka (\S+)/.exec(stdout)?.slice(1, 3).join(', librdkafka ') ?? 'of an unknown version'
      )
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
      throw error
    }
  },
  checks: {
    connect: async ({ open }) => assert.match(await kcat(open.kafka, ['-L']), /1 brokers/),
    'produce and fetch': roundTrip(),
    gzip: roundTrip('-z', 'gzip'),
    snappy: roundTrip('-z', 'snappy'),
    lz4: roundTrip('-z', 'lz4'),
    zstd: roundTrip('-z', 'zstd'),
    idempotent: roundTrip('-X', 'enable.idempotence=true'),
    'record of 1 MB': writeLargeRecord,
    'from a middle offset': readFromTheMiddle,
    'by time': findByTime,
    ...groupChecks(join),
    'static member': staticMemberCheck((joining, id) => join(joining, { 'group.instance.id': id })),
    describe: async stage => {
      const topic = await topicOf(stage)
      assert.match(await kcat(stage.open.kafka, ['-L', '-t', topic]), new RegExp(`"${topic}" with 1 partitions`))
    },
    'SASL PLAIN': login('PLAIN'),
    'SASL SCRAM-SHA-256': login('SCRAM-SHA-256'),
    'SASL SCRAM-SHA-512': login('SCRAM-SHA-512')
  },
  lacks: {
    'create topic': NO_COMMAND,
    'create partitions': NO_COMMAND,
    'delete records': NO_COMMAND,
    'change configuration': NO_COMMAND
  }
}
