/** The scenario json: which cases it has, and what is held against what. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OptionsError, parseOptions } from '../../../native-free-bench/options.ts'
import { planCases } from '../../../native-free-bench/plan.ts'
import type { BrokerCase } from '../../../native-free-bench/plan.ts'
import { compare } from '../../../native-free-bench/results.ts'
import type { CaseResult } from '../../../native-free-bench/results.ts'

function jsonCases(...args: string[]): BrokerCase[] {
  return planCases(parseOptions(['--scenario', 'json', ...args])).flatMap(one => (one.kind === 'disk' ? [] : [one]))
}

/** One round of each case, with the records per second of the list. */
function resultsOf(cases: readonly BrokerCase[], rates: readonly number[]): CaseResult[] {
  const latency = { count: 1, meanMs: 1, p50Ms: 1, p90Ms: 1, p99Ms: 1, p999Ms: 1, maxMs: 1 }
  return cases.map((one, index) => {
    const recordsPerSecond = rates[index] ?? Number.NaN
    const figures = { seconds: 1, requestsPerSecond: 1, recordsPerSecond, bytesPerSecond: 1, latency, slices: [] }
    const rest = { clientCores: 0, brokerCores: 0, refusals: 0, extras: {}, notes: [] }
    return { case: one, rounds: [{ ...figures, ...rest }], failures: [] }
  })
}

test('json has the same load on a broker with its own settings and on both minimal servers', () => {
  const cases = jsonCases('--records', '7', '--bytes', '7', '--connections', '7', '--in-flight', '7', '--keyed')
  assert.deepEqual(
    cases.map(one => one.id),
    ['json/http', 'minimal-group/http', 'minimal-each/http']
  )
  assert.deepEqual(
    cases.map(({ minimal, engine, shards }) => [minimal, engine, shards]),
    [
      [null, null, null],
      ['group', null, null],
      ['each', null, null]
    ]
  )
  for (const { protocol, connections, inFlight, records, valueBytes, partitions, keyed, rate } of cases)
    assert.deepEqual(
      [protocol, connections, inFlight, records, valueBytes, partitions, keyed, rate],
      ['http', 8, 1, 100, 1024, 12, false, null]
    )
})

test('engines and shards multiply the brokers only', () => {
  assert.deepEqual(
    jsonCases('--engine', 'uws,node', '--shards', '1,2').map(one => one.id),
    [
      'json-uws/http/1 shards',
      'json-node/http/1 shards',
      'json-uws/http/2 shards',
      'json-node/http/2 shards',
      'minimal-group/http',
      'minimal-each/http'
    ]
  )
  assert.throws(() => parseOptions(['--engine', 'deno']), OptionsError)
  assert.throws(() => parseOptions(['--scenario', 'json', '--broker', 'a:1']), /json starts and stops brokers/)
})

test('every broker is held against both minimal servers, and those against nothing', () => {
  const cases = jsonCases('--engine', 'uws,node')
  assert.deepEqual(
    compare(resultsOf(cases, [300, 150, 100, 50])).map(({ name, median }) => [name, median]),
    [
      ['json-uws/http ÷ minimal-group/http: records/s', 3],
      ['json-uws/http ÷ minimal-each/http: records/s', 6],
      ['json-node/http ÷ minimal-group/http: records/s', 1.5],
      ['json-node/http ÷ minimal-each/http: records/s', 3]
    ]
  )
})
