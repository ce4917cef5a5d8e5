/** The judge of the crash tests must itself be seen to fail: one doctored history or log for each of its rules. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isIntact, judge, makeValue } from '../support/history.ts'
import type { FoundRecord, PartitionContents, SentRecord } from '../support/history.ts'

const value = (id: string): string => makeValue(id, 30)

function sent(id: string, offset: number, changes: Partial<SentRecord> = {}): SentRecord {
  return { connection: 'c', topic: 't', value: value(id), partition: 0, offset, told: 'acked', ...changes }
}

function at(offset: number, id: string, partition = 0): FoundRecord {
  return { topic: 't', partition, offset, value: value(id) }
}

function log(records: readonly FoundRecord[], firstOffset = 0, partition = 0): PartitionContents {
  return { topic: 't', partition, firstOffset, records }
}

/** Told: two acknowledged, one refused, one in the log and one not of those without an answer. */
const history: readonly SentRecord[] = [
  sent('a', 0),
  sent('no', -1, { told: 'refused' }),
  sent('b', 1),
  sent('lost answer', -1, { told: 'unknown' }),
  sent('lost request', -1, { told: 'unknown' })
]
const truth = [at(0, 'a'), at(1, 'b'), at(2, 'lost answer')]

describe('the judge of the crash tests', () => {
  it('finds nothing in an honest history, and counts it', () => {
    assert.deepEqual(judge(history, [log(truth)], [at(0, 'a'), at(2, 'lost answer')]), {
      acked: 2,
      refused: 1,
      unknown: 2,
      unknownFound: 1,
      found: 3,
      anomalies: []
    })
  })

  it('takes the tail of a log for what it is', () => {
    assert.deepEqual(
      judge(
        [sent('b', 8)],
        [
          log(
            [at(7, 'b')].map(record => ({ ...record, offset: 8 })),
            8
          )
        ]
      ).anomalies,
      []
    )
  })

  /** Doctored: what is wrong, and the kinds that must be found; no others may. */
  const doctored: {
    claim: string
    sent?: readonly SentRecord[]
    contents?: readonly PartitionContents[]
    read?: readonly FoundRecord[]
    kinds: readonly string[]
  }[] = [
    { claim: 'an acknowledged record that is gone', contents: [log([at(0, 'a')])], kinds: ['lost'] },
    {
      claim: 'acknowledged records that changed their offsets',
      contents: [log([at(0, 'b'), at(1, 'a')])],
      kinds: ['moved', 'moved', 'reordered']
    },
    {
      claim: 'an acknowledged record in another partition',
      contents: [log([at(0, 'a')]), log([at(0, 'b', 1)], 0, 1)],
      kinds: ['moved']
    },
    {
      claim: 'an acknowledged record that stands there twice',
      contents: [log([...truth, at(3, 'a')])],
      kinds: ['duplicated']
    },
    {
      claim: 'a record without an answer that stands there twice',
      contents: [log([...truth, at(3, 'lost answer')])],
      kinds: ['duplicated']
    },
    {
      claim: 'a record that was refused and is there',
      contents: [log([...truth, at(3, 'no')])],
      kinds: ['written though refused', 'reordered']
    },
    { claim: 'a record that nobody sent', contents: [log([...truth, at(3, 'stranger')])], kinds: ['foreign'] },
    {
      claim: 'a record whose bytes changed',
      contents: [log([at(0, 'a'), { ...at(1, 'b'), value: value('b').replace('.', ',') }])],
      kinds: ['foreign', 'lost']
    },
    { claim: 'a hole in the offsets', contents: [log([at(0, 'a'), at(1, 'b'), at(3, 'lost answer')])], kinds: ['gap'] },
    { claim: 'a log that begins late', contents: [log([at(1, 'b')])], kinds: ['gap', 'lost'] },
    {
      claim: 'records of one connection out of order, acknowledged so',
      sent: [sent('a', 1), sent('b', 0)],
      contents: [log([at(0, 'b'), at(1, 'a')])],
      kinds: ['reordered']
    },
    {
      claim: 'an offset acknowledged for two records',
      sent: [sent('a', 0), sent('b', 0)],
      contents: [log([at(0, 'a')])],
      kinds: ['lost', 'two values']
    },
    { claim: 'an offset that was read with another value', read: [at(1, 'lost answer')], kinds: ['two values'] },
    { claim: 'a record that was read and is gone', read: [at(3, 'lost request')], kinds: ['unread'] }
  ]
  for (const { claim, kinds, ...case_ } of doctored) {
    it(`finds ${claim}`, () => {
      const { anomalies } = judge(case_.sent ?? history, case_.contents ?? [log(truth)], case_.read)
      assert.deepEqual(
        anomalies.map(anomaly => anomaly.kind).sort(),
        [...kinds].sort(),
        JSON.stringify(anomalies, null, 1)
      )
    })
  }

  it('tells a damaged value from an intact one', () => {
    assert.deepEqual([isIntact(value('a')), isIntact(value('a').replace('a', 'b')), isIntact('')], [true, false, false])
  })
})
