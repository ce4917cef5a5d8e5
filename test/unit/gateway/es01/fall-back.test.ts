/** The listener on a Node whose private socket handles are not as they are today: everything works, with more copying. */
import assert from 'node:assert/strict'
import { connect, createServer } from 'node:net'
import { before, test } from 'node:test'
import { encodeProduceFrame } from '../../../../src/wire/es01/produce-frame.ts'
import { startGateway, until } from './fixture.ts'

/** Takes the method away that the direct way needs, for this process: test files have one each. */
before(async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  const socket = connect(address.port, '127.0.0.1')
  await new Promise(resolve => socket.once('connect', resolve))
  const handle: unknown = Reflect.get(socket, '_handle')
  assert.ok(typeof handle === 'object' && handle !== null)
  let owner: object | null = handle
  while (owner !== null && !Object.hasOwn(owner, 'useUserBuffer')) owner = Reflect.getPrototypeOf(owner)
  assert.ok(owner !== null, 'this Node has the method')
  assert.ok(Reflect.defineProperty(owner, 'useUserBuffer', { value: undefined }))
  socket.destroy()
  server.close()
})

const produce = (id: number, bytes: number): Buffer =>
  encodeProduceFrame(id, 't', [{ value: Buffer.alloc(bytes, id), partition: 0 }])

test('frames of any size arrive whole and in order by data events too', async t => {
  const { greet, gateway, broker } = await startGateway(t)
  const client = await greet()
  assert.deepEqual([gateway.connectionCount, gateway.directCount], [1, 0])
  const sizes = [1, 100, 65_536, 1_000_000, 3, 3_000_000, 7]
  client.send(Buffer.concat(sizes.map((bytes, i) => produce(i, bytes))))
  await client.frames(sizes.length)
  assert.deepEqual(
    broker.log('t', 0).map(record => record.value.length),
    sizes
  )
  assert.ok(broker.log('t', 0).every((record, i) => record.value.equals(Buffer.alloc(sizes[i] ?? 0, i))))
})

test('a full broker and used up memory stop the reading by data events too', async t => {
  const { greet, broker, requestBudget } = await startGateway(t, { requestBytes: 1 << 20 })
  const client = await greet()
  broker.isFull = true
  client.send(Buffer.concat([produce(0, 10), produce(1, 900_000), produce(2, 10)]))
  await until('it waits for room', () => broker.waitingForRoom === 1)
  const rest = requestBudget.limitBytes - requestBudget.usedBytes
  assert.ok(requestBudget.tryReserve(rest))
  broker.makeRoom()
  assert.equal((await client.frame()).id, 0)
  const other = await greet()
  other.send(produce(9, 10))
  await other.frame()
  assert.equal(broker.submitted, 2)
  requestBudget.release(rest)
  assert.deepEqual(
    (await client.frames(2)).map(frame => frame.id),
    [1, 2]
  )
})
