/** Leader epochs as a shard tells them when it has recovered: in pages that fill no large part of the ring. Shard thread. */
import { limits } from '../../src/model/limits.ts'
import type { PartitionEpochs } from '../../src/wire/shard/messages.ts'

/** @param logs all that were recovered. @returns those with an epoch above 0, each whole, in their order. */
export function* epochPages(logs: Iterable<PartitionEpochs>): Generator<PartitionEpochs[]> {
  let page: PartitionEpochs[] = []
  let weight = 0
  for (const { handle, epochs } of logs) {
    if (epochs.length === 0) continue
    page.push({ handle, epochs })
    weight += 1 + epochs.length
    if (weight < limits.epochsPerPage) continue
    yield page
    page = []
    weight = 0
  }
  if (page.length > 0) yield page
}
