/**
 * Whether what is to be listened on can be had: asked by a start that would make a data directory, so that one that is refused
 * for an address leaves none behind. Main thread. The listeners themselves come when the store is open, and may still find
 * an address taken.
 */
import { createServer, type Server } from 'node:net'
import { kafkaListenersOf } from '../config/kafka-listeners.ts'
import type { Settings } from '../config/settings.ts'
import { listenOn } from '../gateway/shared/listen-on.ts'

/** Listens everywhere at once, for a moment. Rejects with an Error of one clear line. */
export async function findAddressesFree({ bind, bindBinary, bindKafka }: Settings): Promise<void> {
  const places = [
    { address: bind, protocol: 'HTTP', flag: '--bind' },
    ...(bindBinary === null ? [] : [{ address: bindBinary, protocol: 'ES01', flag: '--bind-binary' }]),
    ...kafkaListenersOf(bindKafka).map(({ address }) => ({ address, protocol: 'Kafka', flag: '--bind-kafka' }))
  ]
  const servers: Server[] = []
  try {
    for (const place of places) {
      const server = createServer(socket => socket.destroy())
      servers.push(server)
      // Nobody is served here: who could not be accepted comes again.
      await listenOn(server, { ...place, onAcceptError: () => undefined })
    }
  } finally {
    await Promise.all(servers.map(server => new Promise(resolve => server.close(resolve))))
  }
}
