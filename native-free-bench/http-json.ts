/**
 * A plain JSON request for everything that is not measured: creating topics, reading metrics, and the demo's HTTP
 * side. Connections are kept alive by the agent given. Main thread.
 */
import { Agent, request } from 'node:http'
import type { Address } from './drivers/driver.ts'

export interface HttpAnswer {
  readonly status: number
  readonly body: string
}

/** A request that got no answer: what became of it is unknown. */
export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError'
}

/** No request of ours takes longer on a broker that works. */
const TIMEOUT_MS = 30_000

export class HttpJson {
  readonly #address: Address
  readonly #agent: Agent

  /** @param connections most connections at once. */
  constructor(address: Address, connections: number) {
    this.#address = address
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections })
  }

  /** @param body JSON text, or null for none. @throws NoAnswerError when the connection ended first. */
  send(method: string, path: string, body: string | null): Promise<HttpAnswer> {
    return new Promise((resolve, reject) => {
      const fail = (error: Error): void => reject(new NoAnswerError(`${method} ${path}: ${error.message}`))
      const headers =
        body === null ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
      const { host, port } = this.#address
      const outgoing = request(
        { host, port, method, path, headers, agent: this.#agent, timeout: TIMEOUT_MS },
        incoming => {
          const chunks: Buffer[] = []
          incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
          incoming.once('error', fail)
          incoming.once('end', () => {
            resolve({ status: incoming.statusCode ?? 0, body: Buffer.concat(chunks).toString('utf8') })
          })
        }
      )
      outgoing.once('timeout', () => outgoing.destroy(new Error(`no answer in ${TIMEOUT_MS / 1000} s`)))
      outgoing.once('error', fail)
      outgoing.end(body ?? undefined)
    })
  }

  /** As send, but anything but a 2xx is an error with the broker's words. @returns the parsed body. */
  async ask(method: string, path: string, body: object | null): Promise<unknown> {
    const answer = await this.send(method, path, body === null ? null : JSON.stringify(body))
    if (answer.status < 200 || answer.status > 299) {
      throw new Error(`${method} ${path} was answered ${answer.status}: ${answer.body.slice(0, 500)}`)
    }
    const parsed: unknown = JSON.parse(answer.body)
    return parsed
  }

  close(): void {
    this.#agent.destroy()
  }
}
