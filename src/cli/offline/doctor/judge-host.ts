/**
 * Whether this machine, its user and its addresses suit a broker. Pure: facts in, findings out.
 */
import { formatMs } from '../../../base/amounts.ts'
import type { Settings } from '../../../config/settings.ts'
import { judgePlatform } from '../../platform.ts'
import type {
  ClockFacts,
  ConfigurationFacts,
  DirectoryFacts,
  EngineFacts,
  HostFacts,
  OwnerFacts,
  PortFacts
} from './facts.ts'
import { bad, ok, unknown, warn, type Finding } from './finding.ts'

const NODE_MAJOR_MIN = 24
/** No machine with a right clock runs this version earlier. */
const EARLIEST_MS = Date.UTC(2025, 0, 1)
/** A step that is more than the error of two readings. */
const STEP_MS = 50
/** Read or write for others. */
const OPEN_TO_OTHERS = 0o077

/** Faults of the configuration are told once, as `serve` tells them. */
export function judgeConfiguration({ faults, changed }: ConfigurationFacts): Finding {
  const name = 'configuration'
  if (faults.length === 0) return ok(name, `${changed} setting(s) differ from their default`)
  return bad(name, faults.join('; '), 'Correct it; the rest of this list is judged by the defaults.')
}

export function judgeNode({ nodeVersion, nodePath }: HostFacts): Finding {
  const major = Number(/^v?(\d+)/.exec(nodeVersion)?.[1])
  const seen = `${nodeVersion}, ${nodePath}`
  if (major >= NODE_MAJOR_MIN) return ok('node', seen)
  return bad('node', seen, `Install Node ${NODE_MAJOR_MIN} or later, or this package with its optional dependencies.`)
}

export function judgeSystem({ platform, architecture, kernel, glibc }: HostFacts): Finding {
  const seen = `${platform} ${architecture}, kernel ${kernel}, ${glibc === null ? 'no glibc' : `glibc ${glibc}`}`
  const verdict = judgePlatform(platform)
  if (verdict.kind === 'fit') return ok('system', seen)
  const change = 'Run brokers that must keep their word on Linux: syncs are tested there alone.'
  if (verdict.kind === 'untried') return warn('system', `${seen}: ${verdict.warning}`, change)
  return bad('system', seen, 'Run the broker on Linux: it refuses to serve here.')
}

export function judgeEngine(engine: EngineFacts, wanted: Settings['httpEngine']): Finding {
  const name = 'HTTP engine'
  if (engine.state === 'not-tried') return ok(name, 'node:http, as --http-engine asks')
  if (engine.state === 'native') {
    const { patchedPath } = engine
    const how = patchedPath === null ? 'as shipped' : `as a copy for this glibc: ${patchedPath}`
    return ok(name, `uWebSockets.js, ${how}`)
  }
  const seen = `uWebSockets.js does not load: ${engine.reason}`
  if (wanted === 'uws') return bad(name, seen, 'Set --http-engine auto: the broker does not start with uws here.')
  return warn(name, seen, 'Use Linux with glibc 2.31 or later for the faster engine; until then node:http serves.')
}

export function judgeDirectory(directory: DirectoryFacts): Finding {
  const name = 'data directory'
  const { path, nearest, exists, isDirectory, isWritable, problem, mode, ownerId, userId } = directory
  const another = 'Name another with --data-dir.'
  if (!isDirectory) return bad(name, `${nearest} is not a directory`, another)
  if (problem !== null) return bad(name, problem, another)
  const owner = `uid ${ownerId}, mode ${(mode & 0o7777).toString(8).padStart(4, '0')}`
  if (!isWritable) {
    const change = `Give ${nearest} to the user that runs the broker (chown), or run this as that user.`
    return bad(name, `${nearest} (${owner}) cannot be written by uid ${userId ?? '?'}`, change)
  }
  if (!exists) return ok(name, `${path} will be made in ${nearest}`)
  const seen = `${path}, ${owner}`
  if (userId !== null && userId !== ownerId) {
    return warn(name, `${seen}; this runs as uid ${userId}`, `Run the broker, and this, as uid ${ownerId}.`)
  }
  if ((mode & OPEN_TO_OTHERS) !== 0) {
    return warn(name, seen, `Keep others out of records and keys: chmod 700 ${path}.`)
  }
  return ok(name, seen)
}

export function judgeOwner(owner: OwnerFacts): Finding {
  const name = 'broker'
  switch (owner.state) {
    case 'unused':
      return ok(name, 'none has used this directory yet')
    case 'held':
      return ok(name, `runs: ${owner.message}`)
    case 'refused':
      return bad(name, owner.message, 'Put that right, or start from a backup (millrace restore).')
    case 'free': {
      const [problem] = owner.problems
      if (problem === undefined) return ok(name, `none runs; the directory has ${owner.shards} shard(s)`)
      return bad(
        name,
        `none runs; its store has a problem: ${problem}`,
        'Run millrace verify, and see Damage in docs/operations.md.'
      )
    }
  }
}

const portNames: Readonly<Record<PortFacts['flag'], string>> = {
  '--bind': 'HTTP port',
  '--bind-binary': 'binary port',
  '--bind-kafka': 'Kafka port'
}

/** @param isRunning a broker has the directory, and so most likely its ports. */
export function judgePort({ flag, address, problem }: PortFacts, isRunning: boolean): Finding {
  const name = portNames[flag]
  if (problem === null) {
    // A broker that runs with these settings would have it.
    return ok(name, isRunning ? `${address} is free: the broker that runs listens elsewhere` : `${address} is free`)
  }
  if (problem === 'EADDRINUSE' && isRunning) return ok(name, `${address} is taken, as by the broker that runs`)
  const seen = `${address}: ${problem}`
  switch (problem) {
    case 'EADDRINUSE':
      return bad(name, seen, `Stop the process that has it, or choose another with ${flag}.`)
    case 'EACCES':
      return bad(name, seen, `Choose a port above 1023 with ${flag}, or allow this user to bind low ones.`)
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return bad(name, seen, `Name an address of this machine with ${flag}.`)
    default:
      return bad(name, seen, `Choose another address with ${flag}.`)
  }
}

export function judgeClock({ wallMs, stepMs, watchedMs, isSynchronised, source }: ClockFacts): Finding {
  const name = 'clock'
  const time = new Date(wallMs).toISOString()
  if (wallMs < EARLIEST_MS) return bad(name, `${time} cannot be`, 'Set the clock: records and retention go by it.')
  if (Math.abs(stepMs) > STEP_MS) {
    const seen = `${time}; it was set by ${formatMs(Math.abs(stepMs))} ms within ${formatMs(watchedMs)} ms`
    return warn(name, seen, 'Let a time service slew the clock and not set it: timestamps of records follow it.')
  }
  if (isSynchronised === null) return unknown(name, `${time}; ${source}`)
  if (isSynchronised) return ok(name, `${time}, synchronised (${source})`)
  return warn(
    name,
    `${time}, not synchronised (${source})`,
    'Run a time service: timestamps and retention go by this clock.'
  )
}
