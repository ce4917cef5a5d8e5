/** How many pieces an answer leaves in: each is a system call here, and a read of the client. Over sockets, both engines. */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { onBothEngines } from '../support/http-api.ts'
import { requestBytes } from '../support/raw-http.ts'

const CONNECTIONS = 8
const ROUNDS = 60
const body = JSON.stringify({ records: Array.from({ length: 20 }, (_, i) => ({ value: `record ${i} `.repeat(200) })) })

/** Sends one request after the other. @returns how many answers came in more than one read. */
function piecesOn(url: string, requests: readonly Buffer[]): Promise<number> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname)
    let next = 0
    let inPieces = 0
    let text = ''
    const send = (): void => {
      const bytes = requests[next++]
      if (bytes === undefined) {
        socket.destroy()
        resolve(inPieces)
      } else socket.write(bytes)
    }
    socket.once('connect', send)
    socket.once('error', reject)
    socket.on('data', chunk => {
      if (text !== '') inPieces++
      text += chunk.toString('latin1')
      const headEnd = text.indexOf('\r\n\r\n')
      const length = /content-length: (\d+)/i.exec(text)?.[1]
      if (headEnd < 0 || length === undefined || text.length < headEnd + 4 + Number(length)) return
      if (!text.startsWith('HTTP/1.1 200')) reject(new Error(text))
      text = ''
      send()
    })
  })
}

onBothEngines('an answer leaves in one piece, however many sockets are read beside it', async (t, api) => {
  await api.createTopic('t', 4)
  const produce = requestBytes({
    method: 'POST',
    path: '/topics/t/produce',
    headers: 'Content-Type: application/json\r\n',
    body
  })
  const consume = requestBytes({ method: 'GET', path: '/topics/t/consume?partition=0&offset=0&max_records=3' })
  for (const [name, bytes] of [
    ['produce', produce],
    ['consume', consume]
  ] as const) {
    const requests = Array.from({ length: ROUNDS }, () => bytes)
    const counts = await Promise.all(Array.from({ length: CONNECTIONS }, () => piecesOn(api.url, requests)))
    const inPieces = counts.reduce((sum, count) => sum + count, 0)
    t.diagnostic(`${name}: ${CONNECTIONS * ROUNDS} answers, ${inPieces} reads more than one`)
    assert.equal(inPieces, 0, name)
  }
})
