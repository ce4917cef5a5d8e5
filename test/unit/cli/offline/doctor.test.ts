/** What `doctor` concludes from facts, and how it reads the texts of the system: tables, no machine. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseDescriptorLimits } from '../../../../src/base/descriptor-limit.ts'
import { parseCpuMax, readCpuQuota } from '../../../../src/cli/offline/doctor/gather-cgroup.ts'
import { findMount } from '../../../../src/cli/offline/doctor/gather-mount.ts'
import { judge } from '../../../../src/cli/offline/doctor/judge.ts'
import { countLevels, formatFindings } from '../../../../src/cli/offline/doctor/report.ts'
import type { Facts } from '../../../../src/cli/offline/doctor/facts.ts'
import type { Finding, Level } from '../../../../src/cli/offline/doctor/finding.ts'
import { resolveSettings } from '../../../../src/config/resolve.ts'
import type { Settings } from '../../../../src/config/settings.ts'

const GIB = 1024 ** 3

function settingsOf(flags: Record<string, string> = {}): Settings {
  const resolution = resolveSettings({ flags, unknownFlags: [], env: {}, file: null })
  assert.ok(resolution.ok)
  return resolution.settings
}

/** A machine that suits a broker. */
const sound: Facts = {
  configuration: { settings: settingsOf({ '--bind-binary': '127.0.0.1:9001' }), faults: [], changed: 1 },
  host: {
    platform: 'linux',
    architecture: 'x64',
    kernel: '6.8.0',
    glibc: '2.39',
    nodeVersion: 'v24.1.0',
    nodePath: '/usr/bin/node'
  },
  engine: { state: 'native', patchedPath: null },
  directory: {
    path: '/var/lib/millrace',
    nearest: '/var/lib/millrace',
    exists: true,
    isDirectory: true,
    mode: 0o40700,
    ownerId: 1000,
    userId: 1000,
    isWritable: true,
    problem: null
  },
  owner: { state: 'free', shards: 2, problems: [] },
  mount: { type: 'ext4', source: '/dev/sda1', mountPoint: '/', major: 8, minor: 1, options: ['rw', 'relatime'] },
  device: { name: 'sda', writeCache: 'write back', isRotational: false },
  space: { freeBytes: 100 * GIB, diskBytes: 200 * GIB, inodes: 1e7, freeInodes: 9e6, journalBytes: 0 },
  machine: {
    totalBytes: 16 * GIB,
    limitBytes: null,
    processors: 4,
    quota: null,
    descriptors: { soft: 65_536, hard: 65_536 }
  },
  disk: {
    probe: {
      writtenBytes: 64 * 1024 ** 2,
      writeBytesPerSecond: 500 * 1024 ** 2,
      syncs: [
        { bytes: 4096, count: 200, p50Ms: 0.4, p99Ms: 2 },
        { bytes: 1024 ** 2, count: 200, p50Ms: 2, p99Ms: 8 }
      ]
    }
  },
  ports: [
    { flag: '--bind', address: '127.0.0.1:9000', problem: null },
    { flag: '--bind-binary', address: '127.0.0.1:9001', problem: null }
  ],
  clock: {
    wallMs: Date.UTC(2026, 5, 1),
    stepMs: 0.2,
    watchedMs: 3000,
    isSynchronised: true,
    source: 'timedatectl'
  }
}

/** The facts with one part changed here and there. */
function facts<Part extends keyof Facts>(part: Part, change: Partial<Facts[Part]>): Facts {
  return { ...sound, [part]: { ...sound[part], ...change } }
}

function withSyncs(p50Ms: number, p99Ms: number, others: Partial<Facts> = {}): Facts {
  const probe = { writtenBytes: 1, writeBytesPerSecond: GIB, syncs: [{ bytes: 4096, count: 9, p50Ms, p99Ms }] }
  return { ...sound, disk: { probe }, ...others }
}

function withSettings(flags: Record<string, string>, others: Partial<Facts> = {}): Facts {
  return { ...sound, configuration: { settings: settingsOf(flags), faults: [], changed: 1 }, ...others }
}

const tmpfs = { type: 'tmpfs', source: 'tmpfs', mountPoint: '/dev/shm', major: 0, minor: 23, options: ['rw'] }
const writeThrough = { name: 'nvme0n1', writeCache: 'write through', isRotational: false } as const

type Row = readonly [situation: string, facts: Facts, name: string, level: Level, says: RegExp]

const rows: readonly Row[] = [
  ['memory as a disk', { ...sound, mount: tmpfs }, 'file system', 'bad', /in memory/],
  ['a read-only mount', facts('mount', { options: ['ro'] }), 'file system', 'bad', /read-only/],
  ['a mount without barriers', facts('mount', { options: ['rw', 'nobarrier'] }), 'file system', 'bad', /nobarrier/],
  ['the layer of a container', facts('mount', { type: 'overlay' }), 'file system', 'warn', /volume/],
  ['NFS', facts('mount', { type: 'nfs4' }), 'file system', 'warn', /local disk/],
  ['a disk over ssh', facts('mount', { type: 'fuse.sshfs' }), 'file system', 'warn', /local disk/],
  ['no /proc', { ...sound, mount: null }, 'file system', 'unknown', /cannot be told/],
  ['no block device', { ...sound, device: null }, 'write cache', 'unknown', /cannot be told/],
  ['an old kernel', facts('device', { writeCache: null }), 'write cache', 'unknown', /does not say/],
  ['a sync of 5 µs with a volatile cache', withSyncs(0.005, 0.01), 'sync honesty', 'bad', /lost with power/],
  ['a sync of 5 µs on an unknown device', withSyncs(0.005, 0.01, { device: null }), 'sync honesty', 'bad', /lost with/],
  [
    'a sync of 5 µs without a cache',
    withSyncs(0.005, 0.01, { device: writeThrough }),
    'sync honesty',
    'warn',
    /faster/
  ],
  ['a sync of 5 µs in memory', withSyncs(0.005, 0.01, { mount: tmpfs }), 'sync honesty', 'unknown', /means nothing/],
  ['a sync of 21 µs', withSyncs(0.021, 0.05), 'sync honesty', 'ok', /0\.021 ms/],
  ['a sync of 30 ms', withSyncs(30, 60), 'sync speed', 'warn', /faster syncs/],
  ['now and then a sync of 400 ms', withSyncs(1, 400), 'sync speed', 'warn', /what else writes/],
  ['a disk at rest', { ...sound, disk: { skipped: 'a broker runs' } }, 'disk speed', 'unknown', /a broker runs/],
  ['less than the reserve is free', facts('space', { freeBytes: GIB }), 'free space', 'bad', /refused as it is/],
  ['a full journal would go below it', facts('space', { freeBytes: 3 * GIB }), 'free space', 'warn', /Make room/],
  ['500 inodes', facts('space', { freeInodes: 500 }), 'inodes', 'bad', /segments are files/],
  ['5,000 inodes', facts('space', { freeInodes: 5000 }), 'inodes', 'warn', /segments are files/],
  ['btrfs', facts('space', { inodes: 0, freeInodes: 0 }), 'inodes', 'ok', /no fixed number/],
  ['64 MiB of memory', facts('machine', { limitBytes: 64 * 1024 ** 2 }), 'memory', 'bad', /control group/],
  ['512 MiB of memory', facts('machine', { limitBytes: GIB / 2 }), 'memory', 'warn', /--request-memory-bytes/],
  ['half a processor', facts('machine', { quota: 0.5 }), 'processors', 'warn', /whole processor/],
  ['two shards for one processor', facts('machine', { quota: 1 }), 'processors', 'warn', /--shards 1/],
  ['1,024 files', facts('machine', { descriptors: { soft: 1024, hard: 1024 } }), 'open files', 'warn', /LimitNOFILE/],
  [
    'more files asked for than allowed',
    withSettings({ '--max-open-files': '70000' }),
    'open files',
    'bad',
    /--max-open-files/
  ],
  [
    'no limit of files',
    facts('machine', { descriptors: { soft: Infinity, hard: Infinity } }),
    'open files',
    'ok',
    /none/
  ],
  ['Node 20', facts('host', { nodeVersion: 'v20.11.0' }), 'node', 'bad', /Node 24/],
  ['Windows', facts('host', { platform: 'win32', glibc: null }), 'system', 'bad', /refuses to serve/],
  ['macOS', facts('host', { platform: 'darwin', glibc: null }), 'system', 'warn', /on Linux/],
  ['no native engine', { ...sound, engine: { state: 'fallback', reason: 'musl' } }, 'HTTP engine', 'warn', /musl/],
  [
    'no native engine, which is asked for',
    withSettings({ '--http-engine': 'uws' }, { engine: { state: 'fallback', reason: 'musl' } }),
    'HTTP engine',
    'bad',
    /--http-engine auto/
  ],
  [
    'the slower engine by choice',
    { ...sound, engine: { state: 'not-tried' } },
    'HTTP engine',
    'ok',
    /as --http-engine/
  ],
  ['a file as directory', facts('directory', { isDirectory: false }), 'data directory', 'bad', /not a directory/],
  ['no right to write', facts('directory', { isWritable: false }), 'data directory', 'bad', /chown/],
  ['another owner', facts('directory', { userId: 0 }), 'data directory', 'warn', /as uid 1000/],
  ['open to all', facts('directory', { mode: 0o40755 }), 'data directory', 'warn', /chmod 700/],
  ['not made yet', facts('directory', { exists: false, mode: 0o40755 }), 'data directory', 'ok', /will be made/],
  ['a broker runs', { ...sound, owner: { state: 'held', message: 'in use (pid 7)' } }, 'broker', 'ok', /pid 7/],
  ['a newer format', { ...sound, owner: { state: 'refused', message: 'newer' } }, 'broker', 'bad', /newer/],
  [
    'a damaged store',
    { ...sound, owner: { state: 'free', shards: 1, problems: ['row 3 missing'] } },
    'broker',
    'bad',
    /row 3 missing.*verify/
  ],
  ['a clock of 1970', facts('clock', { wallMs: 1000 }), 'clock', 'bad', /Set the clock/],
  ['a clock that was set', facts('clock', { stepMs: -900 }), 'clock', 'warn', /slew/],
  ['a clock that runs free', facts('clock', { isSynchronised: false }), 'clock', 'warn', /time service/],
  ['nobody tells of the clock', facts('clock', { isSynchronised: null }), 'clock', 'unknown', /2026/],
  ['a fault in the file', facts('configuration', { faults: ['shards = 0'] }), 'configuration', 'bad', /shards = 0/]
]

function find(findings: readonly Finding[], name: string): Finding {
  const finding = findings.find(one => one.name === name)
  assert.ok(finding !== undefined, `no finding '${name}' among ${findings.map(one => one.name).join(', ')}`)
  return finding
}

describe('doctor', () => {
  test('finds nothing to do on a machine that suits a broker', () => {
    assert.deepEqual(
      judge(sound).filter(({ level }) => level !== 'ok'),
      []
    )
  })

  for (const [situation, given, name, level, says] of rows) {
    test(`judges ${situation}: ${level}`, () => {
      const finding = find(judge(given), name)
      assert.equal(finding.level, level, JSON.stringify(finding))
      assert.match(`${finding.seen} ${finding.change ?? ''}`, says)
    })
  }

  test('tells what to change, in one sentence, with every finding that is bad or a warning, and with no other', () => {
    for (const [situation, given] of rows) {
      for (const { level, change } of judge(given)) {
        const needsChange = level === 'bad' || level === 'warn'
        assert.equal(change !== null, needsChange, situation)
        if (change !== null) assert.match(change, /^[A-Z].*\.$/, situation)
      }
    }
  })

  for (const [problem, isRunning, level] of [
    [null, false, 'ok'],
    ['EADDRINUSE', false, 'bad'],
    ['EADDRINUSE', true, 'ok'],
    ['EACCES', true, 'bad'],
    ['EADDRNOTAVAIL', false, 'bad'],
    ['ENOTFOUND', false, 'bad']
  ] as const) {
    test(`a port with ${problem ?? 'nothing on it'} is ${level} ${isRunning ? 'beside a broker' : 'without a broker'}`, () => {
      const owner = isRunning ? ({ state: 'held', message: '' } as const) : sound.owner
      const ports = [{ flag: '--bind', address: '127.0.0.1:80', problem }] as const
      assert.equal(find(judge({ ...sound, owner, ports }), 'HTTP port').level, level)
    })
  }

  test('each port is called by the protocol that is spoken there', () => {
    const ports = (['--bind', '--bind-binary', '--bind-kafka'] as const).map((flag, i) => ({
      flag,
      address: `127.0.0.1:${i + 1}`,
      problem: null
    }))
    const seen = judge({ ...sound, ports })
      .filter(({ name }) => name.endsWith(' port'))
      .map(({ name, seen }) => `${name} ${seen.split(' ')[0]}`)
    assert.deepEqual(seen, ['HTTP port 127.0.0.1:1', 'binary port 127.0.0.1:2', 'Kafka port 127.0.0.1:3'])
  })

  test('shows what to change below each finding, and counts them', () => {
    const findings: Finding[] = [
      { level: 'ok', name: 'node', seen: 'v24', change: null },
      { level: 'bad', name: 'clock', seen: '1970', change: 'Set it.' }
    ]
    assert.deepEqual(countLevels(findings), { ok: 1, warn: 0, bad: 1, unknown: 0 })
    assert.equal(
      formatFindings(findings),
      'ok       node   v24\nbad      clock  1970\n                → Set it.\n\n1 ok, 0 warn, 1 bad, 0 unknown\n'
    )
  })
})

describe('the texts of the system', () => {
  test('a folder is on the mount with the longest path, the later of two on one point', () => {
    const text = [
      '22 27 0:21 / /proc rw,relatime - proc proc rw',
      '27 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro',
      '30 27 8:17 / /var/lib rw,noatime master:2 shared:9 - xfs /dev/sdb1 rw,attr2',
      '31 27 0:40 / /var/lib rw - tmpfs none rw,size=1k',
      '32 27 8:33 / /mnt/my\\040disk rw - ext4 /dev/sdc1 rw,barrier=0',
      ''
    ].join('\n')
    const typeOf = (path: string): string | undefined => findMount(path, text)?.type
    assert.deepEqual(['/', '/var/library', '/var/lib', '/var/lib/millrace'].map(typeOf), [
      'ext4',
      'ext4',
      'tmpfs',
      'tmpfs'
    ])
    assert.deepEqual(findMount('/mnt/my disk/data', text), {
      type: 'ext4',
      source: '/dev/sdc1',
      mountPoint: '/mnt/my disk',
      major: 8,
      minor: 33,
      options: ['rw', 'barrier=0']
    })
    assert.equal(findMount('/', ''), null)
  })

  test('the processors of a control group are those of the tightest group above', () => {
    assert.equal(parseCpuMax('150000 100000\n'), 1.5)
    assert.equal(parseCpuMax('max 100000\n'), null)
    const files: Record<string, string> = {
      '/proc/self/cgroup': '0::/user.slice/broker.service\n',
      '/sys/fs/cgroup/user.slice/broker.service/cpu.max': '400000 100000\n',
      '/sys/fs/cgroup/user.slice/cpu.max': '200000 100000\n',
      '/sys/fs/cgroup/cpu.max': 'max 100000\n'
    }
    assert.equal(
      readCpuQuota(path => files[path] ?? null),
      2
    )
    assert.equal(
      readCpuQuota(() => null),
      null
    )
    const old: Record<string, string> = {
      '/proc/self/cgroup': '4:cpu,cpuacct:/docker/1\n',
      '/sys/fs/cgroup/cpu/cpu.cfs_quota_us': '50000\n',
      '/sys/fs/cgroup/cpu/cpu.cfs_period_us': '100000\n'
    }
    assert.equal(
      readCpuQuota(path => old[path] ?? null),
      0.5
    )
  })

  test('the limits of open files are read with their hard one', () => {
    const line = (soft: string, hard: string): string => `Max open files            ${soft}      ${hard}     files \n`
    assert.deepEqual(parseDescriptorLimits(line('1024', '524288')), { soft: 1024, hard: 524_288 })
    assert.deepEqual(parseDescriptorLimits(line('1024', 'unlimited')), { soft: 1024, hard: Infinity })
    assert.deepEqual(parseDescriptorLimits(''), { soft: 1024, hard: 1024 })
  })
})
