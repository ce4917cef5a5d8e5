/** What SIGINT and SIGTERM do to a program that has a broker and a working folder. Main thread. */
import { rmSync } from 'node:fs'

/**
 * On SIGINT and SIGTERM: ends the broker of the moment, removes the folder, leaves with the signal's exit code.
 * @param endBroker kills what runs, if anything does. @returns undoes the handlers.
 */
export function onInterrupt(workDir: string, endBroker: () => Promise<void>): () => void {
  const end = (signal: NodeJS.Signals): void => {
    const finish = (): never => {
      rmSync(workDir, { recursive: true, force: true })
      process.exit(signal === 'SIGINT' ? 130 : 143)
    }
    endBroker().then(finish, finish)
  }
  process.once('SIGINT', end)
  process.once('SIGTERM', end)
  return () => {
    process.off('SIGINT', end)
    process.off('SIGTERM', end)
  }
}
