/** Consumer groups as JSON text. Pure; any thread. Offsets are exact, up to 2^64 − 1 (D25). */
import type {
  Assignment,
  GroupDescription,
  HeartbeatAnswer,
  JoinAnswer,
  MetadataByTopic,
  OffsetsByTopic
} from '../../model/groups.ts'

/** `{"offsets":{"orders":{"0":1}}}`, and where something is noted beside them `,"metadata":{"orders":{"0":"text"}}`. */
export function writeOffsets(offsets: OffsetsByTopic, metadata: MetadataByTopic = new Map()): string {
  const noted = metadata.size === 0 ? '' : `,"metadata":${writeByTopic(metadata, text => JSON.stringify(text))}`
  return `{"offsets":${writeByTopic(offsets, String)}${noted}}`
}

function writeByTopic<Value>(
  topics: ReadonlyMap<string, ReadonlyMap<number, Value>>,
  write: (value: Value) => string
): string {
  const entries = Array.from(topics, ([topic, partitions]) => {
    const values = Array.from(partitions, ([partition, value]) => `"${partition}":${write(value)}`)
    return `${JSON.stringify(topic)}:{${values.join(',')}}`
  })
  return `{${entries.join(',')}}`
}

/** Sorted by topic, then partition, as the assignment is. */
function writePartitions(assignment: Assignment): string {
  const entries: string[] = []
  for (const [topic, partitions] of assignment) {
    const head = `{"topic":${JSON.stringify(topic)},"partition":`
    for (const partition of partitions) entries.push(`${head}${partition}}`)
  }
  return `[${entries.join(',')}]`
}

export function writeJoined({ memberId, generation, assignment }: JoinAnswer): string {
  return `{"member_id":${JSON.stringify(memberId)},"generation":${generation},"assignment":${writePartitions(assignment)}}`
}

export function writeAssignment({ generation, assignment }: Omit<JoinAnswer, 'memberId'>): string {
  return `{"generation":${generation},"assignment":${writePartitions(assignment)}}`
}

/** Only `ok` says `generation`: of the others the member has another one, or none. */
export function writeHeartbeat({ status, generation }: HeartbeatAnswer): string {
  return JSON.stringify(status === 'ok' ? { status, generation } : { status, current_generation: generation })
}

export function writeGroup(description: GroupDescription): string {
  const { group, owner, kind, state, generation, lagRecords, lagSeconds } = description
  const members = description.members.map(({ memberId, topics, partitionCount }) => {
    return { member_id: memberId, topics, partition_count: partitionCount }
  })
  return JSON.stringify({
    group,
    owner,
    kind,
    state,
    generation,
    members,
    lag_records: lagRecords,
    lag_seconds: lagSeconds
  })
}

export function writeOffsetsReset({ groups, entries }: { readonly groups: number; readonly entries: number }): string {
  return JSON.stringify({ groups_affected: groups, entries_reset: entries })
}
