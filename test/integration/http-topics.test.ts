/** Topics over HTTP: create, list, describe, configure, delete (spec 3), on both engines with 1 and with 3 shards. */
import assert from 'node:assert/strict'
import { assertRefused, onBothEngines, onEveryVariant, parse } from '../support/http-api.ts'

const U64_MAX = '18446744073709551615'
const defaults = {
  retention_ms: null,
  retention_bytes: null,
  cleanup_policy: 'delete',
  segment_bytes: 67_108_864,
  tombstone_retention_ms: 86_400_000
}

onEveryVariant('topics are created and described as the specification shows', async (t, api) => {
  await t.test('no topics is an empty list', async () => {
    assert.equal((await api.get('/topics')).text, '{"topics":[]}')
  })

  await t.test('a fresh topic is answered, listed in order of its name, and described empty', async () => {
    const created = await api.post('/topics', '{"name":"b","partitions":2,"comment":"unknown fields are ignored"}')
    assert.deepEqual([created.status, created.text], [201, '{"name":"b","partitions":2}'])
    assert.equal((await api.post('/topics', '{"name":"a"}')).text, '{"name":"a","partitions":1}')
    assert.equal((await api.get('/topics')).text, '{"topics":["a","b"]}')
    const partition = { start_offset: 0, end_offset: 0, segment_count: 1, size_bytes: 0 }
    assert.deepEqual(await api.describe('b'), {
      name: 'b',
      partitions: [
        { id: 0, ...partition },
        { id: 1, ...partition }
      ],
      config: defaults
    })
  })

  await t.test('a description counts what was written', async () => {
    await api.createTopic('counted', 3)
    await api.produce(
      'counted',
      [0, 1, 1].map(partition => ({ partition, value: 'x'.repeat(1000) }))
    )
    const { partitions } = await api.describe('counted')
    assert.deepEqual(
      partitions.map(partition => partition.end_offset),
      [1, 2, 0]
    )
    const [first = 0, second = 0, third] = partitions.map(partition => partition.size_bytes)
    assert.ok(first > 1000 && second > 2000 && third === 0, `sizes ${first}, ${second}, ${third}`)
  })

  await t.test('ten thousand partitions are a topic', async () => {
    await api.createTopic('wide', 10_000)
    const results = await api.produce('wide', [{ partition: 9_999, value: 'last' }])
    assert.deepEqual(results, [{ partition: 9_999, offset: 0 }])
    const ends = await api.ends('wide')
    assert.deepEqual([ends.length, ends.reduce((sum, end) => sum + end, 0), ends[9_999]], [10_000, 1, 1])
  })
})

onBothEngines('a topic that cannot be created is refused with its field, value and limit', async (t, api) => {
  await api.createTopic('taken')
  const before = (await api.get('/topics')).text
  const refusals: readonly (readonly [string, string, number, string, readonly (string | number)[]])[] = [
    ['an existing name comes first', '{"name":"taken","partitions":0}', 409, 'TOPIC_EXISTS', ['taken']],
    [
      'the partitions come before the name',
      '{"name":"no/slash","partitions":0}',
      400,
      'FIELD_RANGE',
      ['partitions', 0, 10_000]
    ],
    [
      'the name comes before the config',
      '{"name":"no/slash","config":{"segment_bytes":1}}',
      400,
      'NAME_INVALID',
      ['no/slash', 200]
    ],
    ['too many partitions', '{"name":"x","partitions":10001}', 400, 'FIELD_RANGE', ['partitions', 10_001, 10_000]],
    ['half a partition', '{"name":"x","partitions":1.5}', 400, 'FIELD_INVALID', ['partitions', 10_000]],
    ['partitions as text', '{"name":"x","partitions":"3"}', 400, 'FIELD_INVALID', ['partitions']],
    ['negative partitions', '{"name":"x","partitions":-1}', 400, 'FIELD_INVALID', ['partitions']],
    ['partitions beyond 32 bits', '{"name":"x","partitions":4294967297}', 400, 'FIELD_INVALID', ['partitions']],
    ['no name', '{}', 400, 'FIELD_INVALID', ['name']],
    ['a number for a name', '{"name":7}', 400, 'FIELD_INVALID', ['name']],
    ['null for a name', '{"name":null}', 400, 'FIELD_INVALID', ['name']],
    ['an empty name', '{"name":""}', 400, 'NAME_INVALID', ['name', 200]],
    ['the name of this directory', '{"name":"."}', 400, 'NAME_INVALID', ["'.'"]],
    ['the name of the directory above', '{"name":".."}', 400, 'NAME_INVALID', ["'..'"]],
    ['a name of 201 bytes', JSON.stringify({ name: 'n'.repeat(201) }), 400, 'NAME_INVALID', [200]],
    ['a name outside ASCII', '{"name":"größe"}', 400, 'NAME_INVALID', ['größe']],
    ['a list for a config', '{"name":"x","config":[]}', 400, 'FIELD_INVALID', ['config']],
    [
      'an unknown policy',
      '{"name":"x","config":{"cleanup_policy":"burn"}}',
      400,
      'FIELD_INVALID',
      ['config.cleanup_policy', 'compact']
    ],
    [
      'a segment too small',
      '{"name":"x","config":{"segment_bytes":127}}',
      400,
      'FIELD_RANGE',
      ['config.segment_bytes', 127, 128]
    ],
    [
      'a segment too large',
      '{"name":"x","config":{"segment_bytes":1099511627777}}',
      400,
      'FIELD_RANGE',
      [1_099_511_627_777, 1_099_511_627_776]
    ],
    [
      'a retention beyond 64 bits',
      '{"name":"x","config":{"retention_ms":18446744073709551616}}',
      400,
      'FIELD_INVALID',
      ['config.retention_ms', U64_MAX]
    ],
    [
      'a negative retention',
      '{"name":"x","config":{"retention_bytes":-2}}',
      400,
      'FIELD_INVALID',
      ['config.retention_bytes']
    ],
    [
      'a negative tombstone retention',
      '{"name":"x","config":{"tombstone_retention_ms":-1}}',
      400,
      'FIELD_INVALID',
      ['tombstone_retention_ms']
    ]
  ]
  for (const [what, body, status, code, fragments] of refusals) {
    await t.test(what, async () => assertRefused(await api.post('/topics', body), status, code, fragments))
  }
  await t.test('nothing of them was created', async () => assert.equal((await api.get('/topics')).text, before))
  await t.test('a name of 200 bytes is taken', () => api.createTopic('n'.repeat(200)))
  await t.test('of many requests for one name one creates it', async () => {
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => api.post('/topics', '{"name":"race","partitions":3}'))
    )
    assert.deepEqual(answers.map(answer => answer.status).sort(), [201, 409, 409, 409, 409, 409, 409, 409])
  })
})

onBothEngines('the configuration of a topic', async (t, api) => {
  const put = (body: string) => api.call('PUT', '/topics/tuned/config', body)
  const config = async () => parse<unknown>(await api.get('/topics/tuned/config'))
  await api.createTopic('tuned', 1, { retention_ms: 5000, cleanup_policy: 'compact,delete' })

  await t.test('is resolved from what its creator said and the defaults', async () => {
    assert.deepEqual(await config(), { ...defaults, retention_ms: 5000, cleanup_policy: 'compact,delete' })
  })
  await t.test('keeps what a change omits or sets to null, and answers with all of it', async () => {
    const answer = await put('{"retention_bytes":77,"retention_ms":null,"cleanup_policy":"compact"}')
    const expected = { ...defaults, retention_ms: 5000, retention_bytes: 77, cleanup_policy: 'compact' }
    assert.deepEqual(parse<unknown>(answer), expected)
    assert.deepEqual(await config(), expected)
    assert.deepEqual((await api.describe('tuned')).config, expected)
  })
  await t.test('is cleared back to never by -1', async () => {
    assert.deepEqual(parse<unknown>(await put('{"retention_ms":-1,"retention_bytes":-1}')), {
      ...defaults,
      cleanup_policy: 'compact'
    })
  })
  await t.test('holds 64-bit numbers digit for digit', async () => {
    const answer = await put(
      `{"retention_ms":${U64_MAX},"retention_bytes":9007199254740993,"tombstone_retention_ms":${U64_MAX}}`
    )
    const expected =
      `{"retention_ms":${U64_MAX},"retention_bytes":9007199254740993,"cleanup_policy":"compact",` +
      `"segment_bytes":67108864,"tombstone_retention_ms":${U64_MAX}}`
    assert.equal(answer.text, expected)
    assert.equal((await api.get('/topics/tuned/config')).text, expected)
  })
  await t.test('stays whole when one field of a change is refused', async () => {
    const before = (await api.get('/topics/tuned/config')).text
    assertRefused(await put('{"retention_ms":1,"segment_bytes":127}'), 400, 'FIELD_RANGE', ['segment_bytes', 127, 128])
    assert.equal((await api.get('/topics/tuned/config')).text, before)
  })
  await t.test('takes changes of many at once one after the other, and loses none', async () => {
    const changes = [
      '{"retention_ms":11}',
      '{"retention_bytes":22}',
      '{"segment_bytes":333}',
      '{"tombstone_retention_ms":44}'
    ]
    const answers = await Promise.all(changes.map(put))
    assert.deepEqual(
      answers.map(answer => answer.status),
      [200, 200, 200, 200]
    )
    assert.deepEqual(await config(), {
      retention_ms: 11,
      retention_bytes: 22,
      cleanup_policy: 'compact',
      segment_bytes: 333,
      tombstone_retention_ms: 44
    })
  })
  await t.test('is not found for a topic that does not exist, before its fields are judged', async () => {
    assertRefused(await api.get('/topics/none/config'), 404, 'TOPIC_NOT_FOUND', ['none'])
    assertRefused(await api.call('PUT', '/topics/none/config', '{"segment_bytes":1}'), 404, 'TOPIC_NOT_FOUND', ['none'])
  })
})

onEveryVariant('a deleted topic is gone, and its name begins anew', async (t, api) => {
  await api.createTopic('phoenix', 3, { retention_ms: 1 })
  await api.produce(
    'phoenix',
    Array.from({ length: 10 }, (_, i) => ({ value: `old ${i}` }))
  )
  const deleted = await api.call('DELETE', '/topics/phoenix')
  assert.deepEqual([deleted.status, deleted.text], [200, '{"name":"phoenix","partitions":3}'])

  await t.test('every route says so at once', async () => {
    const answers = await Promise.all([
      api.get('/topics/phoenix'),
      api.get('/topics/phoenix/config'),
      api.call('PUT', '/topics/phoenix/config', '{}'),
      api.call('DELETE', '/topics/phoenix'),
      api.post('/topics/phoenix/produce', '{"records":[]}'),
      api.get('/topics/phoenix/consume?partition=0&offset=0')
    ])
    for (const answer of answers) assertRefused(answer, 404, 'TOPIC_NOT_FOUND', ['phoenix'])
    assert.equal((await api.get('/topics')).text, '{"topics":[]}')
  })
  await t.test('the topic of that name made next is empty, with its own partitions and defaults', async () => {
    await api.createTopic('phoenix', 2)
    const { partitions, config } = await api.describe('phoenix')
    assert.deepEqual(config, defaults)
    assert.deepEqual(
      partitions.map(partition => [partition.start_offset, partition.end_offset, partition.size_bytes]),
      [
        [0, 0, 0],
        [0, 0, 0]
      ]
    )
    assert.deepEqual(await api.consume('phoenix', 0, 'offset=0'), { records: [], next_offset: 0, high_watermark: 0 })
  })
  await t.test('its offsets and its round-robin begin at 0', async () => {
    const results = await api.produce('phoenix', [{ value: 'new 0' }, { value: 'new 1' }, { value: 'new 2' }])
    assert.deepEqual(results, [
      { partition: 0, offset: 0 },
      { partition: 1, offset: 0 },
      { partition: 0, offset: 1 }
    ])
    assert.deepEqual(
      (await api.consumeAll('phoenix', 0)).map(record => record.value),
      ['new 0', 'new 2']
    )
  })
  await t.test('a topic deleted while it is written to answers each produce with its offset or 404', async () => {
    await api.createTopic('going', 3)
    const produces = Array.from({ length: 40 }, (_, i) =>
      api.post('/topics/going/produce', { records: [{ value: `v${i}` }] })
    )
    const [deletion, ...answers] = await Promise.all([api.call('DELETE', '/topics/going'), ...produces])
    assert.equal(deletion.status, 200)
    for (const answer of answers) {
      if (answer.status === 200) assert.match(answer.text, /^\{"results":\[\{"partition":\d,"offset":\d+\}\]\}$/)
      else assertRefused(answer, 404, 'TOPIC_NOT_FOUND', ['going'])
    }
  })
})
