/**
 * The process of the minimal server: `node minimal-process FILE BYTES group|each`. Makes and fills the file, listens on a
 * free port of 127.0.0.1, and logs on stderr what a broker logs, for broker-process.ts to read. Ends on SIGTERM, after
 * what it has taken is on the disk.
 * Must never: listen on another address, or write anywhere but to its file and stderr.
 */
import { once } from 'node:events'
import { fillFile } from './limit-worker.ts'
import { MinimalLog, openLogFile } from './minimal-log.ts'
import { createMinimalServer } from './minimal-server.ts'

async function main(args: readonly string[]): Promise<number> {
  const [path, size, mode] = args
  const fileBytes = Number(size)
  if (
    path === undefined ||
    !Number.isSafeInteger(fileBytes) ||
    fileBytes < 1 ||
    (mode !== 'group' && mode !== 'each')
  ) {
    console.error('usage: minimal-process FILE BYTES group|each')
    return 2
  }
  const ended = Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT')])
  fillFile(path, fileBytes)
  const log = new MinimalLog(await openLogFile(path), fileBytes, mode)
  const server = createMinimalServer(log)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  report({ msg: 'slots filled', shard: 0, bytes: fileBytes })
  report({ msg: 'ready', httpAddress: `127.0.0.1:${address.port}` })
  await ended
  server.closeAllConnections()
  await new Promise(resolve => server.close(resolve))
  await log.close()
  report({ msg: 'stopped', syncs: log.syncs, journalBytes: log.writtenBytes, slotsUnfilled: 0 })
  return 0
}

function report(fields: Readonly<Record<string, unknown>>): void {
  console.error(JSON.stringify(fields))
}

process.exitCode = await main(process.argv.slice(2))
