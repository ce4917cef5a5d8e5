/**
 * Apache Kafka as a child process: broker and controller in one (KRaft), on the loopback, on a directory of its own, with a
 * heap of 1 GB and otherwise as it comes. Main thread.
 */
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { startServer } from '../broker-process.ts'
import type { ServerProcess } from '../broker-process.ts'
import type { Address } from '../drivers/driver.ts'
import { javaArguments } from './java.ts'
import type { JavaPrograms } from './java.ts'

const HOST = '127.0.0.1'
const FORMAT_TIMEOUT_MS = 60_000
/** Its log says so once all listeners serve. */
const READY_WORDS = 'Kafka Server started'

export interface KafkaServer extends ServerProcess {
  readonly address: Address
}

/** @param directory empty. @throws Error with Kafka's last words. */
export async function startKafka(programs: JavaPrograms, directory: string): Promise<KafkaServer> {
  const [port, controllerPort] = await freePorts()
  const properties = join(directory, 'server.properties')
  writeFileSync(properties, serverProperties(directory, port, controllerPort))
  const format = ['kafka.tools.StorageTool', 'format', '--standalone', '-t', newClusterId(), '-c', properties]
  await programs.run(format, FORMAT_TIMEOUT_MS)
  const flags = ['-Xms1g', '-Xmx1g', '-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info']
  const args = javaArguments(programs.classPath, flags, ['kafka.Kafka', properties])
  const server = await startServer('java', args, READY_WORDS)
  return { ...server, address: { host: HOST, port } }
}

/** Replication factors of 1 because there is one broker; groups begin at once, as with the properties that Kafka ships. */
function serverProperties(directory: string, port: number, controllerPort: number): string {
  return [
    'process.roles=broker,controller',
    'node.id=1',
    `controller.quorum.bootstrap.servers=${HOST}:${controllerPort}`,
    'controller.listener.names=CONTROLLER',
    `listeners=PLAINTEXT://${HOST}:${port},CONTROLLER://${HOST}:${controllerPort}`,
    `advertised.listeners=PLAINTEXT://${HOST}:${port}`,
    'listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
    `log.dirs=${join(directory, 'logs')}`,
    'offsets.topic.replication.factor=1',
    'transaction.state.log.replication.factor=1',
    'transaction.state.log.min.isr=1',
    'share.coordinator.state.topic.replication.factor=1',
    'share.coordinator.state.topic.min.isr=1',
    'group.initial.rebalance.delay.ms=0',
    ''
  ].join('\n')
}

/** 16 bytes of base64url; one that begins with - would be taken for a flag. */
function newClusterId(): string {
  const bytes = randomBytes(16)
  bytes[0] = 0
  return bytes.toString('base64url')
}

/** Two ports that were free a moment ago: Kafka wants to be told. */
async function freePorts(): Promise<readonly [number, number]> {
  const servers = [createServer(), createServer()] as const
  const listening = servers.map(
    server => new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, HOST, resolve))
  )
  await Promise.all(listening)
  const [first, second] = servers.map(server => (server.address() as AddressInfo).port)
  await Promise.all(servers.map(server => new Promise(resolve => server.close(resolve))))
  return [first ?? 0, second ?? 0]
}
