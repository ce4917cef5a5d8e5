/** One HTTPS request of a test: the whole answer, whatever its status. */
import { request, type RequestOptions } from 'node:https'
import type { IncomingHttpHeaders } from 'node:http'

export interface SecureAnswer {
  readonly status: number
  readonly text: string
  readonly headers: IncomingHttpHeaders
}

/** A GET on a connection of its own. @param ca PEM of the certificate to trust. */
export function overTls(url: string, ca: string, headers: RequestOptions['headers'] = {}): Promise<SecureAnswer> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { ca, headers, agent: false }, response => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const { statusCode: status = 0, headers: received } = response
        resolve({ status, text: Buffer.concat(chunks).toString(), headers: received })
      })
    })
    sent.on('error', reject)
    sent.end()
  })
}
