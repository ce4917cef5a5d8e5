/** What both HTTP engines must do alike when they are asked for offsets. Run by uws-engine.test.ts and node-engine.test.ts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertError, startGateway } from './http-harness.ts'
import type { EngineName } from './http-harness.ts'

/** Claims about the offsets route. */
export function offsetCases(engine: EngineName): void {
  test('offsets are told for one partition or all of them, with and without a time', async t => {
    const { broker, send } = await startGateway(t, engine)
    await send('POST', '/topics', '{"name":"t","partitions":2}')
    await send('POST', '/topics/t/produce', '{"records":[{"value":"a","partition":1},{"value":"b","partition":1}]}')
    const cases = [
      ['?partition=1', '{"partition":1,"earliest":0,"latest":2}'],
      ['?partition=1&timestamp_ms=1', '{"partition":1,"earliest":0,"latest":2,"offset":0,"timestamp_ms":1}'],
      ['?timestamp_ms=2&partition=1', '{"partition":1,"earliest":0,"latest":2,"offset":2,"timestamp_ms":null}'],
      [
        '?other=%zz',
        '{"partitions":[{"partition":0,"earliest":0,"latest":0},{"partition":1,"earliest":0,"latest":2}]}'
      ],
      [
        '?timestamp_ms=-5',
        '{"partitions":[{"partition":0,"earliest":0,"latest":0,"offset":0,"timestamp_ms":null},' +
          '{"partition":1,"earliest":0,"latest":2,"offset":0,"timestamp_ms":1}]}'
      ]
    ] as const
    for (const [query, text] of cases) {
      const answer = await send('GET', `/topics/t/offsets${query}`)
      assert.deepEqual([answer.status, answer.text], [200, text], query)
    }
    assert.deepEqual(broker.timesAsked, [null, 1n, 2n, null, -5n])
  })

  test('a time of 64 bits, signed or not, reaches the broker exactly', async t => {
    const { broker, send } = await startGateway(t, engine)
    await send('POST', '/topics', '{"name":"t"}')
    const times = ['-9223372036854775808', '18446744073709551615', '9007199254740993', '0007', '-0']
    for (const time of times) assert.equal((await send('GET', `/topics/t/offsets?timestamp_ms=${time}`)).status, 200)
    assert.deepEqual(broker.timesAsked, [-(2n ** 63n), 2n ** 64n - 1n, 9007199254740993n, 7n, 0n])
  })

  test('a bad parameter of an offsets question is refused by its name, value and limits', async t => {
    const { broker, send } = await startGateway(t, engine)
    const range = /-9223372036854775808 to 18446744073709551615/
    const cases = [
      ['partition=-1', 'FIELD_INVALID', /^partition: must be a whole number/],
      ['partition=', 'FIELD_INVALID', /^partition: must be a whole number/],
      ['partition=4294967296', 'FIELD_INVALID', /^partition: must be .* to 4294967295/],
      ['partition=0&partition=0', 'FIELD_INVALID', /^partition: is given twice/],
      ['timestamp_ms=', 'FIELD_INVALID', /^timestamp_ms: '' is not a whole number/],
      ['timestamp_ms=noon', 'FIELD_INVALID', /^timestamp_ms: 'noon' is not a whole number/],
      ['timestamp_ms=1.5', 'FIELD_INVALID', /^timestamp_ms: '1\.5' is not/],
      ['timestamp_ms=1e3', 'FIELD_INVALID', range],
      ['timestamp_ms=%2B1', 'FIELD_INVALID', /'\+1' is not/],
      [`timestamp_ms=${'x'.repeat(5000)}`, 'FIELD_INVALID', /^timestamp_ms: 'x{40}…' is not/],
      ['timestamp_ms=18446744073709551616', 'FIELD_RANGE', /^timestamp_ms is 18446744073709551616: /],
      ['timestamp_ms=-9223372036854775809', 'FIELD_RANGE', range],
      [`timestamp_ms=${'9'.repeat(5000)}`, 'FIELD_RANGE', /^timestamp_ms is 9{40}…: /],
      ['timestamp_ms=%zz', 'FIELD_INVALID', /percent escape/]
    ] as const
    for (const [query, code, words] of cases) {
      assertError(await send('GET', `/topics/nope/offsets?${query}`), 400, code, words)
    }
    assertError(await send('GET', '/topics/nope/offsets'), 404, 'TOPIC_NOT_FOUND', /nope/)
    assertError(await send('POST', '/topics/nope/offsets', '{}'), 405, 'METHOD_NOT_ALLOWED', /GET, HEAD/)
    assert.equal(broker.timesAsked.filter(time => time !== null).length, 0)
  })
}
