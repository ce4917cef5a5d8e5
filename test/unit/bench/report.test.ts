/** Options, plan, ratios, units and the report in its three forms. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { DiskCalm } from '../../../native-free-bench/limit.ts'
import {
  deviceNumber,
  dropCaches,
  dropFileCaches,
  fileSystemOf,
  freeBytes,
  openDescriptors,
  parseCpuSeconds,
  parseDeviceBytes,
  parseResidentBytes,
  processCpuSeconds,
  residentBytes
} from '../../../native-free-bench/machine.ts'
import { OptionsError, helpText, parseOptions } from '../../../native-free-bench/options.ts'
import { orderOfRound, partitionCountsOf, planCases } from '../../../native-free-bench/plan.ts'
import { escapeText, niceCeiling } from '../../../native-free-bench/report/charts.ts'
import { renderHtml } from '../../../native-free-bench/report/html.ts'
import { renderTable } from '../../../native-free-bench/report/table.ts'
import { compare } from '../../../native-free-bench/results.ts'
import type { BenchReport, CaseResult, RoundResult, StudyResult } from '../../../native-free-bench/results.ts'
import { recordsPerRequest } from '../../../native-free-bench/recovery.ts'
import { median, pairedRatio } from '../../../native-free-bench/statistics.ts'
import { planStudies, runStudy } from '../../../native-free-bench/studies.ts'
import { formatBytes, formatCount, formatMs } from '../../../src/base/amounts.ts'
import { parseBytes } from '../../../native-free-bench/units.ts'

function round(bytesPerSecond: number, p50Ms: number, notes: string[] = []): RoundResult {
  const latency = {
    count: 1,
    meanMs: p50Ms,
    p50Ms,
    p90Ms: p50Ms * 2,
    p99Ms: p50Ms * 3,
    p999Ms: p50Ms * 4,
    maxMs: p50Ms * 5
  }
  const rates = { seconds: 1, requestsPerSecond: 10, recordsPerSecond: bytesPerSecond / 10, bytesPerSecond }
  return {
    ...rates,
    latency,
    slices: [1, 5, 3],
    clientCores: 0.5,
    brokerCores: null,
    refusals: 0,
    extras: { writeBytes: 4096 },
    notes
  }
}

/** A run in which round i of a case has the i-th of the given bytes per second; a null failed. */
function resultsOf(args: string[], rates: Record<string, (number | null)[]>): CaseResult[] {
  return planCases(parseOptions(args)).map(one => ({
    case: one,
    rounds: (rates[one.id] ?? [1, 1, 1]).map(rate => (rate === null ? null : round(rate, rate))),
    failures: []
  }))
}

function reportOf(cases: CaseResult[], studies: StudyResult[] = []): BenchReport {
  const machine = {
    cpu: 'Test <CPU> & "co"',
    cores: 2,
    memoryBytes: 2 ** 34,
    kernel: '6.1',
    fileSystem: 'ext4 on /dev/vda',
    node: 'v24'
  }
  const rest = { command: "npm run bench -- --html 'a&b.html'", durability: 'fdatasync', startedAt: 'now' }
  return { machine, ...rest, cases, comparisons: compare(cases), studies, notes: ['a note of <the run>'] }
}

describe('options', () => {
  test('the defaults are the load that the project is judged by', () => {
    const { connections, inFlight, records, valueBytes, rounds, partitionCounts, rate, broker } = parseOptions([])
    assert.deepEqual(
      [connections, inFlight, records, valueBytes, rounds, rate, broker],
      [8, 4, 500, 256, 5, null, null]
    )
    assert.equal(partitionCounts, null)
    assert.deepEqual(partitionCountsOf('partitions', parseOptions([])), [1, 12, 100, 1000])
  })

  test('every fault is named at once', () => {
    const wrong = [
      '--scenario',
      'produce,dance',
      '--rounds',
      '0',
      '--bytes',
      'many',
      '--broker',
      'nowhere',
      '--rate',
      '1.5'
    ]
    assert.throws(
      () => parseOptions(wrong),
      error =>
        error instanceof OptionsError &&
        ['dance', '--rounds', 'many', 'nowhere', '--rate'].every(word => error.message.includes(word))
    )
    assert.throws(() => parseOptions(['--conections', '8']), OptionsError)
    assert.throws(() => parseOptions(['--broker', 'a:1', '--shards', '2']), /cannot change/)
    assert.throws(
      () => parseOptions(['--broker', 'a:1', '--scenario', 'produce,sustained']),
      /sustained starts and stops/
    )
    assert.throws(() => parseOptions(['--gigabytes', '10,1']), /must rise/)
  })

  test('the help names every option that is understood', () => {
    const named = [...helpText.matchAll(/^ {2}--([a-z-]+)/gm)].map(match => match[1] ?? '')
    for (const name of named) {
      const args = name === 'help' || name === 'keyed' ? [`--${name}`] : [`--${name}`, '1']
      assert.doesNotThrow(() => {
        try {
          parseOptions(args)
        } catch (error) {
          if (!(error instanceof OptionsError) || error.message.includes('Unknown option')) throw error
        }
      }, name)
    }
    assert.equal(named.length, 28)
  })
})

describe('plan', () => {
  test('limits come along, rounds alternate their direction, ids are unique', () => {
    const cases = planCases(
      parseOptions(['--scenario', 'limit,produce,partitions,latency', '--protocol', 'es01,http', '--shards', '1,2'])
    )
    const ids = cases.map(one => one.id)
    assert.equal(new Set(ids).size, ids.length)
    assert.deepEqual(ids.slice(0, 3), ['limit-mean', 'limit-1mib', 'limit-4kib'])
    assert.ok(ids.includes('partitions-1000/http/2 shards') && ids.includes('keyed-12/es01/1 shards'))
    assert.deepEqual(orderOfRound(cases, 1), orderOfRound(cases, 0).toReversed())
    assert.deepEqual(orderOfRound(cases, 2), cases)
  })
})

describe('plan of the long scenarios', () => {
  const idsOf = (...args: string[]): string[] => planCases(parseOptions(args)).map(one => one.id)

  test('sustained runs over few partitions and over many, cleaning brings along what it is held against', () => {
    assert.deepEqual(idsOf('--scenario', 'sustained'), ['sustained-12/es01', 'sustained-1000/es01'])
    assert.deepEqual(idsOf('--scenario', 'cleaning'), ['sustained-12/es01', 'cleaning-12/es01'])
    assert.deepEqual(idsOf('--scenario', 'sustained,cleaning', '--partition-counts', '3,5'), [
      'sustained-3/es01',
      'sustained-5/es01',
      'cleaning-3/es01'
    ])
  })
})

describe('ratios', () => {
  test('a sustained load is held against its own burst, cleaning also against sustained of the same round', () => {
    const cases = resultsOf(['--scenario', 'sustained,cleaning'], {
      'sustained-12/es01': [600, 800],
      'cleaning-12/es01': [540, 400]
    }).map(result => ({
      ...result,
      rounds: result.rounds.map(one => (one === null ? null : { ...one, extras: { burstRecordsPerSecond: 100 } }))
    }))
    const ratios = new Map(compare(cases).map(({ name, perRound }) => [name, perRound]))
    assert.deepEqual(ratios.get('sustained-12/es01: records/s ÷ burst of the same round'), [0.6, 0.8])
    assert.deepEqual(ratios.get('cleaning-12/es01: records/s ÷ burst of the same round'), [0.54, 0.4])
    assert.deepEqual(ratios.get('cleaning-12/es01 ÷ sustained-12/es01: records/s'), [0.9, 0.5])
  })

  test('a ratio pairs the rounds, and a failed round pairs with nothing', () => {
    assert.deepEqual(pairedRatio([4, undefined, 9], [2, 1, 3]), { perRound: [2, 3], median: 2.5 })
    assert.deepEqual(pairedRatio([1], [0]).perRound, [])
    assert.equal(median([5, 1, 3]), 3)
    assert.ok(Number.isNaN(median([])))
  })

  test('produce is held against the larger limit, 1000 partitions against one, latency against the bare sync', () => {
    const cases = resultsOf(['--rounds', '3'], {
      'limit-mean': [100, 300, 100],
      'limit-1mib': [200, 200, 200],
      'limit-4kib': [2, 2, 2],
      'produce/es01': [100, 150, null],
      'partitions-1/es01': [100, 100, 100],
      'partitions-1000/es01': [70, 80, 90],
      'latency/es01': [4, 5, 6]
    })
    const found = new Map(compare(cases).map(one => [one.name, one]))
    assert.deepEqual(found.get('produce/es01: bytes/s ÷ limit')?.perRound, [0.5, 0.5])
    assert.equal(found.get('1000 partitions ÷ 1 partition/es01: records/s')?.median, 0.8)
    assert.equal(found.get('latency/es01: p50 ÷ bare 4 KiB write + fdatasync p50')?.median, 2.5)
  })
})

describe('report', () => {
  const cases = resultsOf(['--rounds', '3'], {
    'produce/es01': [100, null, 200],
    'partitions-12/es01': [null, null, null]
  })
  const report = reportOf(cases)

  test('the table shows every round, also failed ones, the machine, and the notes', () => {
    const table = renderTable(report)
    for (const part of [
      'produce/es01: 10 · failed · 20',
      'Test <CPU>',
      'ext4 on /dev/vda',
      'fdatasync',
      'a note of <the run>',
      '--html'
    ]) {
      assert.ok(table.includes(part), part)
    }
  })

  test('the HTML is well formed, self-contained, and readable in both themes', () => {
    const html = renderHtml(report)
    assertWellFormed(html)
    assert.ok(html.includes('prefers-color-scheme: dark'))
    assert.ok(html.includes('Test &#60;CPU&#62; &#38; &#34;co&#34;') && !html.includes('<CPU>'))
    assert.equal(/(src|href)\s*=|<script|@import|url\(/.test(html), false)
    assert.equal((html.match(/<svg/g) ?? []).length, cases.length + 1)
    assert.equal(/NaN|Infinity|undefined/.test(html), false)
  })

  test('the check of well-formedness sees a tag that is not closed, crossed or doubled', () => {
    for (const broken of ['<p><b></p></b>', '<p>', '<p></p></p>', '<p a="1>x</p>', '<p>a & b</p>']) {
      assert.throws(() => assertWellFormed(broken), broken)
    }
  })

  test('axes end at round numbers', () => {
    assert.deepEqual([0, 1, 1.1, 4999, 5001, 0.03].map(niceCeiling), [1, 1, 2, 5000, 10_000, 0.05])
  })
})

describe('studies', () => {
  const idsOf = (...args: string[]): string[] => planStudies(parseOptions(args)).map(one => one.id)
  const table = {
    columns: ['data', 'ready ms'],
    rows: [
      ['1 <GB>', 1234],
      ['10 GB', null]
    ],
    notes: ['caches kept']
  }
  const done: StudyResult = { id: 'recovery-1000', title: 'Recovery & co', table, failure: null }
  const failed: StudyResult = { id: 'many-9', title: 'Many', table: null, failure: 'no <disk>' }

  test('recovery and many have their partition counts, and no cases of their own', () => {
    assert.deepEqual(idsOf('--scenario', 'recovery,many'), ['recovery-1000', 'recovery-10000', 'many-10000'])
    assert.deepEqual(idsOf('--scenario', 'many', '--partition-counts', '9'), ['many-9'])
    assert.deepEqual(idsOf('--scenario', 'groups'), ['groups'])
    assert.deepEqual(idsOf('--scenario', 'streams'), ['streams'])
    assert.deepEqual(idsOf('--scenario', 'connections'), ['connections'])
    assert.deepEqual(idsOf('--scenario', 'kafka'), ['kafka'])
    assert.deepEqual(planCases(parseOptions(['--scenario', 'recovery,many'])), [])
    assert.deepEqual(idsOf(), [])
  })

  test('every partition gets some of the smallest size, and no request has more records than was said', () => {
    const base = { gigabytes: [1, 10], records: 500, valueBytes: 256 }
    assert.equal(recordsPerRequest(base, 10), 500)
    const records = recordsPerRequest(base, 10_000)
    assert.ok(records < 500 && records * 256 * 10_000 * 4 <= 0.5e9, String(records))
    assert.equal(recordsPerRequest({ ...base, valueBytes: 1_000_000 }, 10_000), 1)
  })

  test('a failure is a result with its reason, so that the run goes on', async () => {
    const study = { id: 'a', title: 'b', run: () => Promise.reject(new Error('no disk')) }
    const context = {
      options: parseOptions([]),
      ...{ workDir: '', limitPath: '', calm: new DiskCalm(''), current: null, others: new Set<never>() },
      ...{ bytesPerSync: [], budgets: new Map() }
    }
    assert.deepEqual(await runStudy(study, context, () => undefined), {
      id: 'a',
      title: 'b',
      table: null,
      failure: 'no disk'
    })
  })

  test('their tables are shown without an empty one of cases, failures with the reason', () => {
    const text = renderTable(reportOf([], [done, failed]))
    assert.match(text, /Recovery & co:\n {2}data +ready ms\n {2}1 <GB> +1,234\n {2}10 GB +–\n/)
    assert.match(text, /Many: failed\n {2}no <disk>/)
    assert.match(text, /recovery-1000: caches kept/)
    assert.ok(!text.includes('requests/s'))
  })

  test('the page has them too, escaped', () => {
    const html = renderHtml(reportOf([], [done, failed]))
    assertWellFormed(html)
    for (const part of ['Recovery & co', '1 <GB>', '1,234', 'failed: no <disk>', 'caches kept'].map(escapeText)) {
      assert.ok(html.includes(part), part)
    }
    assert.ok(!html.includes('<h2>Throughput'))
  })
})

describe('units and machine', () => {
  test('sizes are read as people write them', () => {
    assert.deepEqual(['4096', '64KiB', '1 MiB', '2GiB', '1.5kB'].map(parseBytes), [
      4096,
      65_536,
      2 ** 20,
      2 ** 31,
      1500
    ])
    for (const wrong of ['', '-1', '1 parsec', 'KiB']) assert.throws(() => parseBytes(wrong), /is not a size/)
  })

  test('numbers are shown in three or four digits', () => {
    assert.deepEqual(
      [formatBytes(1536), formatBytes(3 * 2 ** 30), formatCount(2_340_000), formatMs(0.1421)],
      ['1.5 KiB', '3.00 GiB', '2.34 M', '0.142']
    )
  })

  test('CPU time is read past any process name, and this process has used some', () => {
    const line = `12 (a) b (c)) S ${Array.from({ length: 40 }, (_, i) => (i === 10 ? 150 : i === 11 ? 50 : 7)).join(' ')}`
    assert.equal(parseCpuSeconds(line), 2)
    assert.ok((processCpuSeconds(process.pid) ?? 0) > 0)
    assert.equal(processCpuSeconds(2 ** 30), null)
  })

  test('memory of this process and bytes on a device are read as the kernel writes them', t => {
    assert.equal(parseResidentBytes('VmHWM:\t  9 kB\nVmRSS:\t   1234 kB\n'), 1234 * 1024)
    assert.ok((residentBytes(process.pid) ?? 0) > 10 * 1024 * 1024)
    assert.equal(residentBytes(2 ** 30), null)
    assert.ok((openDescriptors(process.pid) ?? 0) >= 3)
    assert.equal(openDescriptors(2 ** 30), null)
    assert.equal(
      parseDeviceBytes('  235832  25637 15015354 172651 5930593 268815 2107286288 1017975 0\n'),
      2107286288 * 512
    )
    assert.equal(parseDeviceBytes(''), null)
    assert.equal(deviceNumber(0xfe00), '254:0')
    assert.equal(deviceNumber((259 << 8) | 5 | (0x123 << 20)), `259:${0x12300 | 5}`)
    const folder = mkdtempSync(join(tmpdir(), 'millrace-machine-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    assert.ok(freeBytes(folder) > 0)
  })

  test('caches that cannot be dropped are a reason to show, not an error', t => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-machine-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    assert.match(dropCaches(join(folder, 'none')) ?? '', /caches were not dropped \(ENOENT/)
    assert.match(dropFileCaches(join(folder, 'none')) ?? '', /file caches were not dropped \(/)
    assert.equal(dropFileCaches(folder), null)
    writeFileSync(join(folder, 'switch'), '')
    assert.equal(dropCaches(join(folder, 'switch')), null)
    assert.equal(readFileSync(join(folder, 'switch'), 'utf8'), '3\n')
  })

  test('the longest mount point that holds a folder names its file system', () => {
    const mounts = 'rootfs / ext4 rw 0 0\n/dev/b /data xfs rw 0 0\ntmpfs /data/tmp tmpfs rw 0 0\n'
    assert.equal(fileSystemOf('/data/x', mounts), 'xfs on /dev/b')
    assert.equal(fileSystemOf('/data/tmp', mounts), 'tmpfs on tmpfs')
    assert.equal(fileSystemOf('/database', mounts), 'ext4 on rootfs')
  })
})

/** Tags nest and close, attributes are quoted, ampersands are escaped. Style content is text without tags. */
function assertWellFormed(html: string): void {
  const open: string[] = []
  const token = /<!DOCTYPE html>|<(\/?)([a-zA-Z][a-zA-Z0-9]*)((?:\s+[a-zA-Z][a-zA-Z0-9-]*="[^"<]*")*)\s*(\/?)>|[^<]+/gy
  let at = 0
  for (const match of html.matchAll(token)) {
    assert.equal(match.index, at, `markup that cannot be read at ${at}: ${html.slice(at, at + 60)}`)
    at += match[0].length
    const [text, closing, name, , selfClosing] = match
    if (name === undefined) assert.ok(!/&(?!#\d+;|[a-z]+;)/.test(text), `a bare ampersand in ${text.slice(0, 40)}`)
    else if (closing === '/') assert.equal(open.pop(), name)
    else if (selfClosing !== '/') open.push(name)
  }
  assert.equal(at, html.length, `markup that cannot be read at ${at}: ${html.slice(at, at + 60)}`)
  assert.deepEqual(open, [])
}
