/**
 * `millrace doctor`: gathers the facts one source after the other, has them judged, prints the findings. Main thread.
 * Invariant: a broker that runs is not disturbed, and nothing is left in its directory.
 */
import type { Settings } from '../../../config/settings.ts'
import { exitCodes, print, type CliIo, type ExitCode } from '../../io.ts'
import { probeDisk } from './disk-probe.ts'
import type { ConfigurationFacts, DirectoryFacts, DiskFacts, Facts, OwnerFacts, SpaceFacts } from './facts.ts'
import { gatherClock, readClocks } from './gather-clock.ts'
import { gatherDirectory, gatherOwner, gatherSpace } from './gather-directory.ts'
import { gatherEngine, gatherHost, gatherMachine } from './gather-host.ts'
import { gatherDevice, gatherMount } from './gather-mount.ts'
import { gatherPorts } from './gather-ports.ts'
import { judge } from './judge.ts'
import { countLevels, formatFindings } from './report.ts'

export interface DoctorOptions {
  readonly configuration: ConfigurationFacts
  readonly isJson: boolean
  /** Puts the disk to work also below a broker that runs. */
  readonly isForced: boolean
}

/** @returns ok, or refused if something is bad. */
export async function runDoctor({ configuration, isJson, isForced }: DoctorOptions, io: CliIo): Promise<ExitCode> {
  const facts = await gather(configuration, isForced)
  const findings = judge(facts)
  const { disk } = facts
  const json = { findings, counts: countLevels(findings), disk: 'probe' in disk ? disk.probe : null }
  await print(io.stdout, isJson ? `${JSON.stringify(json)}\n` : formatFindings(findings))
  return findings.some(({ level }) => level === 'bad') ? exitCodes.refused : exitCodes.ok
}

async function gather(configuration: ConfigurationFacts, isForced: boolean): Promise<Facts> {
  const clocks = readClocks()
  const settings: Settings = configuration.settings
  const directory = gatherDirectory(settings.dataDir)
  const owner = gatherOwner(directory)
  const mount = gatherMount(directory.nearest)
  const space = gatherSpace(directory)
  return {
    configuration,
    host: gatherHost(),
    engine: gatherEngine(settings.httpEngine),
    directory,
    owner,
    mount,
    device: gatherDevice(mount),
    space,
    machine: gatherMachine(),
    disk: await gatherDisk({ directory, owner, space }, isForced),
    ports: await gatherPorts(settings),
    clock: await gatherClock(clocks)
  }
}

async function gatherDisk(
  { directory, owner, space }: { directory: DirectoryFacts; owner: OwnerFacts; space: SpaceFacts },
  isForced: boolean
): Promise<DiskFacts> {
  if (owner.state === 'held' && !isForced)
    return { skipped: 'a broker runs on this directory (--force does it anyway)' }
  if (!directory.isWritable || !directory.isDirectory || directory.problem !== null) {
    return { skipped: 'nothing can be written there' }
  }
  const interrupt = new AbortController()
  const hear = (signal: NodeJS.Signals): void => interrupt.abort(signal)
  process.on('SIGINT', hear).on('SIGTERM', hear)
  try {
    return await probeDisk(directory.nearest, space, interrupt.signal)
  } finally {
    process.off('SIGINT', hear).off('SIGTERM', hear)
    // The file is gone by now: this process ends as it was asked to.
    if (interrupt.signal.aborted) process.kill(process.pid, String(interrupt.signal.reason))
  }
}
