/** All findings, in the order in which they are shown. Pure. */
import { defaultShardCount } from '../../../config/shards.ts'
import type { Facts } from './facts.ts'
import type { Finding } from './finding.ts'
import { judgeDisk, judgeFileSystem, judgeWriteCache } from './judge-disk.ts'
import {
  judgeClock,
  judgeConfiguration,
  judgeDirectory,
  judgeEngine,
  judgeNode,
  judgeOwner,
  judgePort,
  judgeSystem
} from './judge-host.ts'
import { judgeDescriptors, judgeInodes, judgeMemory, judgeProcessors, judgeSpace } from './judge-room.ts'

/** @returns one finding a thing at least, whatever the facts are. */
export function judge(facts: Facts): Finding[] {
  const { configuration, host, engine, directory, owner, mount, device, space, machine, disk, ports, clock } = facts
  const { settings } = configuration
  const shards = shardsOf(facts)
  return [
    judgeConfiguration(configuration),
    judgeNode(host),
    judgeSystem(host),
    judgeEngine(engine, settings.httpEngine),
    judgeDirectory(directory),
    judgeOwner(owner),
    judgeFileSystem(mount),
    judgeWriteCache(device),
    ...judgeDisk(disk, mount, device),
    judgeSpace(settings, space, machine, shards),
    judgeInodes(space),
    judgeMemory(settings, machine, shards),
    judgeProcessors(machine, shards),
    judgeDescriptors(settings, machine),
    ...ports.map(port => judgePort(port, owner.state === 'held')),
    judgeClock(clock)
  ]
}

/** What was asked for, else what the directory has, else what a new one gets. */
function shardsOf({ configuration, owner, machine }: Facts): number {
  const { shards } = configuration.settings
  if (shards !== null) return shards
  const found = owner.state === 'free' ? owner.shards : 0
  return found > 0 ? found : defaultShardCount(machine.processors)
}
