/** Flags over environment over file over defaults, and every fault in one go. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { checkTogether } from '../../../src/config/cross-checks.ts'
import { resolveSettings, showSource, type ConfigInput } from '../../../src/config/resolve.ts'
import { envNameOf, schema, settingFields, tomlKeyOf } from '../../../src/config/schema.ts'
import type { Settings } from '../../../src/config/settings.ts'

const nothing: ConfigInput = { flags: {}, unknownFlags: [], env: {}, file: null }

function resolved(input: Partial<ConfigInput>): Settings {
  const resolution = resolveSettings({ ...nothing, ...input })
  assert.ok(resolution.ok, resolution.ok ? '' : resolution.faults.join('\n'))
  return resolution.settings
}

function faultsOf(input: Partial<ConfigInput>): readonly string[] {
  const resolution = resolveSettings({ ...nothing, ...input })
  assert.ok(!resolution.ok, 'expected a fault')
  return resolution.faults
}

function tomlFile(t: TestContext, content: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-config-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'test.toml')
  writeFileSync(path, content)
  return path
}

test('without any source the defaults of the specification are in effect', () => {
  const settings = resolved({})
  const { dataDir, bind, bindBinary, auth, segmentBytes, flushEveryRecords, flushIntervalMs } = settings
  assert.deepEqual(
    { dataDir, bind, bindBinary, auth, segmentBytes, flushEveryRecords, flushIntervalMs },
    {
      dataDir: './data',
      bind: '127.0.0.1:9000',
      bindBinary: null,
      auth: 'disabled',
      segmentBytes: 67_108_864,
      flushEveryRecords: 1,
      flushIntervalMs: 1_000
    }
  )
  const { maxRequestBodyBytes, maxRecordBytes, maxFetchBytes, maxFetchRecords, binaryIdleTimeoutMs } = settings
  assert.deepEqual(
    [maxRequestBodyBytes, maxRecordBytes, maxFetchBytes, maxFetchRecords, binaryIdleTimeoutMs],
    [10_485_760, 8_388_608, 8_388_608, 10_000, 600_000]
  )
  assert.deepEqual(Object.keys(settings).sort(), [...settingFields].sort())
})

test('a flag wins over the environment, that over the file, that over the default', t => {
  const file = tomlFile(t, 'shards = 5\nlog_level = "warn"\nmax_fetch_records = 7\n')
  const resolution = resolveSettings({
    flags: { '--shards': '3' },
    unknownFlags: [],
    env: { MILLRACE_SHARDS: '4', MILLRACE_LOG_LEVEL: 'debug' },
    file
  })
  assert.ok(resolution.ok)
  const { settings, sources } = resolution
  assert.deepEqual([settings.shards, settings.logLevel, settings.maxFetchRecords], [3, 'debug', 7])
  const fields = ['shards', 'logLevel', 'maxFetchRecords', 'bind'] as const
  assert.deepEqual(
    fields.map(field => showSource(sources[field])),
    ['flag --shards', 'env MILLRACE_LOG_LEVEL', `file ${file}`, 'default']
  )
})

test('every fault of every source is reported at once, with key, value, source and range', t => {
  const file = tomlFile(t, 'shrads = 2\nmax_record_bytes = 0\nflush_interval = 5\n[table]\nbind = "x"\n')
  const faults = faultsOf({
    flags: { '--journal-slot-bytes': '1MiB', '--request-ring-bytes': '3MiB' },
    unknownFlags: ['--dta-dir=x'],
    env: { MILLRACE_BNID: 'a', MILLRACE_HTTP_ENGINE: 'apache', PATH: '/bin' },
    file
  })
  assert.deepEqual(faults, [
    `${file}: table is a table or a date: every key stands at the top and has a plain value`,
    'unknown flag --dta-dir: did you mean --data-dir?',
    'unknown environment variable MILLRACE_BNID: did you mean MILLRACE_BIND?',
    `unknown key in ${file}: shrads: did you mean shards?`,
    'http_engine = "apache" (env MILLRACE_HTTP_ENGINE) is not a known word; allowed: auto, uws, node',
    `flush_interval = 5 (file ${file}) has no unit: write 5ms or 5s; allowed: 1ms to 1h`,
    'journal_slot_bytes = "1MiB" (flag --journal-slot-bytes) is out of range; allowed: 64 MiB to 1 GiB',
    `max_record_bytes = 0 (file ${file}) is out of range; allowed: 1 B to 32 MiB`,
    'request_ring_bytes = "3MiB" (flag --request-ring-bytes) is not a power of two; allowed: 1 MiB to 256 MiB, a power of two'
  ])
})

test('a setting that only topics have is told as that, wherever it is looked for', t => {
  const file = tomlFile(t, 'retention_ms = 1000\n')
  const faults = faultsOf({
    unknownFlags: ['--cleanup-policy=compact'],
    env: { MILLRACE_PARTITIONER: 'murmur2' },
    file
  })
  const told = "each topic has its own: 'millrace topic alter' sets it"
  assert.deepEqual(faults, [
    `unknown flag --cleanup-policy: ${told}`,
    `unknown environment variable MILLRACE_PARTITIONER: ${told}`,
    `unknown key in ${file}: retention_ms: ${told}`
  ])
})

test('what other programs call a setting leads to its name here', t => {
  const file = tomlFile(t, 'log_dirs = "/data"\n')
  const env = { MILLRACE_ADVERTISED_LISTENERS: 'x' }
  assert.deepEqual(faultsOf({ unknownFlags: ['--port=1', '--listeners'], env, file }), [
    'unknown flag --port: did you mean --bind?',
    'unknown flag --listeners: did you mean --bind-kafka?',
    'unknown environment variable MILLRACE_ADVERTISED_LISTENERS: did you mean MILLRACE_BIND_KAFKA?',
    `unknown key in ${file}: log_dirs: did you mean data_dir?`
  ])
})

test('the record and fetch limits accept exactly 1 to 33554432 bytes', () => {
  for (const flag of ['--max-record-bytes', '--max-fetch-bytes']) {
    for (const accepted of ['1', '33554432', '32MiB']) resolved({ flags: { [flag]: accepted } })
    for (const refused of ['0', '33554433', '-1', 'x']) assert.equal(faultsOf({ flags: { [flag]: refused } }).length, 1)
  }
})

test('zero fetch records and zero connections count as one, less than zero is refused', () => {
  const settings = resolved({ flags: { '--max-fetch-records': '0', '--binary-max-connections-per-ip': '0' } })
  assert.deepEqual([settings.maxFetchRecords, settings.binaryMaxConnectionsPerIp], [1, 1])
  assert.equal(faultsOf({ flags: { '--max-fetch-records': '-1' } }).length, 1)
})

test('the secret of a key in the place of a setting is not repeated', () => {
  const faults = faultsOf({ env: { MILLRACE_AUTH: 'esk_secret' } })
  assert.equal(faults.length, 1)
  assert.match(faults[0] ?? '', /auth = \(secret\) \(env MILLRACE_AUTH\)/)
})

test('a feature of a later version refuses to start and names its flag, and nothing else does', () => {
  const later = {
    '--raft-node-id': '1',
    '--raft-bind': '127.0.0.1:9002',
    '--raft-peer': '2=127.0.0.1:9003',
    '--raft-shared-secret': 'hunter2'
  }
  const ofLater = settingFields.filter(field => 'later' in schema[field]).map(field => schema[field].flag)
  assert.deepEqual(ofLater, Object.keys(later))
  for (const [flag, value] of Object.entries(later)) {
    const faults = faultsOf({ flags: { [flag]: value } })
    assert.equal(faults.length, 1)
    assert.match(
      faults[0] ?? '',
      new RegExp(`${flag} is of the replicated engine to come, and not available in this version`)
    )
  }
  assert.equal(resolved({ flags: { '--auth': 'disabled' } }).auth, 'disabled')
  assert.equal(resolved({ flags: { '--auth': 'required' } }).auth, 'required')
})

test('origins are those that browsers send, and a star is none', () => {
  const origins = ['https://app.example', 'http://localhost:3000', 'http://[::1]:8080', 'capacitor://localhost']
  assert.deepEqual(resolved({ flags: { '--cors-origin': origins } }).corsOrigin, origins)
  const refused: readonly (readonly [string, RegExp])[] = [
    ['*', /has \*: name each origin/],
    ['null', /sandboxed/],
    ['https://app.example/', /write https:\/\/app\.example;/],
    ['https://App.example:443', /write https:\/\/app\.example;/],
    ['https://app.example/path', /write https:\/\/app\.example;/],
    ['app.example', /write scheme:\/\/host/],
    ['https://', /write scheme:\/\/host/]
  ]
  for (const [origin, words] of refused) assert.match(faultsOf({ flags: { '--cors-origin': origin } }).join(), words)
})

test('segments, retention, compaction and settling can be timed and bounded', () => {
  const { segmentMs, retentionCheckIntervalMs, compactionCheckIntervalMs, segmentDeleteGraceMs, ...rest } = resolved({
    flags: {
      '--segment-ms': '100ms',
      '--retention-check-interval': '10ms',
      '--compaction-check-interval': '20ms',
      '--segment-delete-grace': '0ms',
      '--settle-idle': '50ms',
      '--settle-age': '2m',
      '--journal-budget-bytes': '256MiB',
      '--disk-reserve-bytes': '0',
      '--max-open-files': '64',
      '--compaction-memory-bytes': '1MiB'
    }
  })
  const { settleIdleMs, settleAgeMs, journalBudgetBytes, diskReserveBytes, maxOpenFiles, compactionMemoryBytes } = rest
  assert.deepEqual(
    [segmentMs, retentionCheckIntervalMs, compactionCheckIntervalMs, segmentDeleteGraceMs, settleIdleMs, settleAgeMs],
    [100, 10, 20, 0, 50, 120_000]
  )
  assert.deepEqual(
    [journalBudgetBytes, diskReserveBytes, maxOpenFiles, compactionMemoryBytes],
    [268_435_456, 0, 64, 1_048_576]
  )
})

test('storage settings beyond their range are refused, and auto gives the choice back', t => {
  const refused = {
    '--segment-ms': ['99ms', '3651d', '5'],
    '--journal-budget-bytes': ['255MiB', '1025GiB'],
    '--disk-reserve-bytes': ['-1', '1025GiB'],
    '--max-open-files': ['63', '1000001'],
    '--compaction-memory-bytes': ['1023KiB', '5GiB'],
    '--cold-cache-bytes': ['1023KiB'],
    '--settle-idle': ['9ms'],
    '--settle-age': ['366d']
  }
  for (const [flag, values] of Object.entries(refused)) {
    for (const value of values) assert.match(faultsOf({ flags: { [flag]: value } }).join(), /; allowed: /, flag)
  }
  const file = tomlFile(t, 'journal_budget_bytes = "1GiB"\ndisk_reserve_bytes = 1\nmax_open_files = 64\n')
  const flags = { '--journal-budget-bytes': 'auto', '--disk-reserve-bytes': 'auto', '--max-open-files': 'auto' }
  const { journalBudgetBytes, diskReserveBytes, maxOpenFiles } = resolved({ file, flags })
  assert.deepEqual([journalBudgetBytes, diskReserveBytes, maxOpenFiles], [null, null, null])
})

test('cold segments go to one place, and a service needs a bucket', () => {
  const dir = '/cold'
  const bucket = 's3://bucket/prefix'
  const endpoint = 'http://127.0.0.1:9090'
  const faultsWith = (coldStorageDir: string | null, coldStorage: string | null, coldStorageEndpoint: string | null) =>
    checkTogether({ coldStorageDir, coldStorage, coldStorageEndpoint })
  assert.deepEqual(faultsWith(dir, bucket, null), [
    'cold_storage_dir and cold_storage are both set: sealed segments can be moved to one place only'
  ])
  const alone = ['cold_storage_endpoint is set without cold_storage: name the bucket too']
  assert.deepEqual(faultsWith(null, null, endpoint), alone)
  assert.deepEqual(faultsWith(dir, null, endpoint), alone)
  for (const [where, what, address] of [
    [null, null, null],
    [dir, null, null],
    [null, bucket, null],
    [null, bucket, endpoint]
  ] as const) {
    assert.deepEqual(faultsWith(where, what, address), [])
  }
  // A value that was refused itself is not judged again.
  assert.deepEqual(checkTogether({ coldStorageEndpoint: endpoint }), [])
})

test('a secret is not repeated in the fault about it', () => {
  const faults = faultsOf({ env: { ES_RAFT_SHARED_SECRET: 'hunter2' } })
  assert.match(faults.join(), /raft_shared_secret = \(secret\) \(env ES_RAFT_SHARED_SECRET\)/)
  assert.doesNotMatch(faults.join(), /hunter2/)
})

test('an open bind without authentication is refused, with the three ways out; names wait for the start', () => {
  const waysOut = /--bind .* can be reached from other machines .*127\.0\.0\.1.*--auth required.*--allow-remote-unauth/
  for (const bind of ['0.0.0.0:9000', '[::]:9000', '[::ffff:10.0.0.1]:9000', '192.168.1.4:9000']) {
    assert.match(faultsOf({ flags: { '--bind': bind } }).join(), waysOut)
    assert.match(faultsOf({ flags: { '--bind-binary': bind } }).join(), /--bind-binary .* can be reached/)
    resolved({ flags: { '--bind': bind, '--allow-remote-unauthenticated': true } })
  }
  for (const bind of ['127.9.9.9:1', '[::1]:1', 'localhost:1', '127.evil.example:1'])
    resolved({ flags: { '--bind': bind } })
})

test('two listeners on one address are refused, unless the system picks the ports', () => {
  assert.match(
    faultsOf({ flags: { '--bind-binary': '127.0.0.1:9000' } }).join(),
    /each listener needs a port of its own/
  )
  resolved({ flags: { '--bind': '127.0.0.1:0', '--bind-binary': '127.0.0.1:0' } })
})

test('a size that cannot fit into what must hold it is refused', () => {
  const faults = faultsOf({
    flags: { '--journal-first-slot-bytes': '256MiB', '--max-record-bytes': '32MiB', '--reply-memory-bytes': '16MiB' }
  })
  assert.deepEqual(faults, [
    '--journal-first-slot-bytes (256 MiB) is above --journal-slot-bytes (128 MiB)',
    '--max-record-bytes (32 MiB) is above --reply-memory-bytes (16 MiB)'
  ])
})

test('lists come from repeated flags, a comma-separated variable, or an array in the file', t => {
  const expected = ['a.example', 'b.example']
  assert.deepEqual(resolved({ flags: { '--allowed-host': expected } }).allowedHost, expected)
  assert.deepEqual(resolved({ env: { MILLRACE_ALLOWED_HOST: 'a.example, b.example' } }).allowedHost, expected)
  const file = tomlFile(t, 'allowed_host = ["a.example", "b.example"]\n')
  assert.deepEqual(resolved({ file }).allowedHost, expected)
  assert.equal(faultsOf({ env: { MILLRACE_ALLOWED_HOST: 'a,,b' } }).length, 1)
})

test('off and auto are values, so that a flag can undo what the file says', t => {
  const file = tomlFile(t, 'bind_binary = "127.0.0.1:9001"\nshards = 7\n')
  const settings = resolved({ file, flags: { '--bind-binary': 'off', '--shards': 'auto' } })
  assert.deepEqual([settings.bindBinary, settings.shards], [null, null])
})

test('an empty environment variable counts as not set', () => {
  assert.equal(resolved({ env: { MILLRACE_BIND: '', MILLRACE_SHARDS: '' } }).bind, '127.0.0.1:9000')
})

test('a value of the wrong TOML type is refused', t => {
  const file = tomlFile(
    t,
    'bind = 9000\nshards = true\nallow_remote_unauthenticated = "maybe"\ndata_dir = ""\nallowed_host = [1]\n'
  )
  assert.equal(faultsOf({ file }).length, 5)
})

test('a file that is missing or is not TOML is named with the place of the fault', t => {
  assert.match(
    faultsOf({ file: '/nonexistent/m.toml' }).join(),
    /cannot read .*\/nonexistent\/m\.toml .*: no such file/
  )
  const file = tomlFile(t, 'bind = "127.0.0.1:9000"\nshards = = 3\n')
  const faults = faultsOf({ file })
  assert.equal(faults.length, 1)
  assert.match(faults[0] ?? '', /test\.toml, line 2, column \d+: /)
})

test('no two settings share a flag, and each is reachable by flag, environment and file', t => {
  const flags = settingFields.map(field => schema[field].flag)
  assert.equal(new Set(flags).size, flags.length)
  const samples = {
    list: 'x://y',
    address: 'localhost:1',
    string: 'x',
    boolean: 'true',
    choice: 'auto',
    duration: '7s'
  }
  for (const field of settingFields) {
    const { flag, kind } = schema[field]
    const sample = kind.name === 'integer' || kind.name === 'bytes' ? '7' : samples[kind.name]
    const file = tomlFile(t, `${tomlKeyOf(field)} = "${sample}"`)
    const inputs = [{ flags: { [flag]: sample } }, { env: { [envNameOf(field)]: sample } }, { file }]
    const sourceNames = [`flag ${flag}`, `env ${envNameOf(field)}`, `file ${file}`]
    for (const [index, input] of inputs.entries()) {
      // The address of a service is nothing without a bucket, and one file of TLS nothing without the other.
      const beside: ConfigInput['flags'] =
        field === 'coldStorageEndpoint'
          ? { '--cold-storage': 's3://bucket' }
          : field === 'tlsCert'
            ? { '--tls-key': 'k' }
            : field === 'tlsKey'
              ? { '--tls-cert': 'c' }
              : {}
      const resolution = resolveSettings({ ...nothing, ...input, flags: { ...beside, ...input.flags } })
      // A sample out of a setting's range, or of a later feature, shows its source in the fault.
      const seen = resolution.ok ? showSource(resolution.sources[field]) : resolution.faults.join()
      assert.ok(seen.includes(sourceNames[index] ?? '?'), `${field}: ${seen}`)
    }
  }
})
