/** kcat, over librdkafka: the command line that most people try first. Needs the program on the path. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { HttpApi } from '../support/http-api.ts'
import { newTopic, type Check, type ClientStage, type KafkaClientUnderTest } from './client.ts'

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
  const { code, stdout, stderr } = await run(['-b', address, ...args], input)
  assert.equal(code, 0, stderr)
  return stdout
}

async function topicOf({ open }: ClientStage): Promise<string> {
  const topic = newTopic()
  await new HttpApi(open.url).createTopic(topic)
  return topic
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
  const topic = await topicOf(stage)
  await kcat(stage.open.kafka, ['-P', '-t', topic], 'one\ntwo\nthree\n')
  assert.equal(await consumed(stage.open.kafka, topic, '-p', '0', '-o', '1'), 'two\nthree\n')
}

const findByTime: Check = async stage => {
  const topic = await topicOf(stage)
  await kcat(stage.open.kafka, ['-P', '-t', topic], 'one\n')
  assert.match(await kcat(stage.open.kafka, ['-Q', '-t', `${topic}:0:1`]), /\[0\] offset 0/)
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
    describe: async stage => {
      const topic = await topicOf(stage)
      assert.match(await kcat(stage.open.kafka, ['-L', '-t', topic]), new RegExp(`"${topic}" with 1 partitions`))
    },
    'SASL PLAIN': login('PLAIN'),
    'SASL SCRAM-SHA-256': login('SCRAM-SHA-256'),
    'SASL SCRAM-SHA-512': login('SCRAM-SHA-512')
  }
}
