/** The lines that the commands of groups print for people. Pure. */
import type { AssignmentAnswer, GroupAnswer, HeartbeatAnswer, OffsetsOfGroup } from '../client/http/group-calls.ts'
import { alignWords } from './table.ts'

/** A group in words. */
export function formatGroup(answer: GroupAnswer): string[] {
  const { group, owner, kind, state, generation, members, lag_records: records, lag_seconds: seconds } = answer
  const lag = [`lag_records=${records ?? 'unknown'}`, `lag_seconds=${seconds ?? 'unknown'}`]
  const which = [`group=${group}`, `owner=${owner}`, `kind=${kind ?? 'none'}`, `state=${state}`]
  return [...which, `generation=${generation}`, `members=${members.length}`, ...lag]
}

/** Groups by name, one a line. */
export function formatGroups(groups: readonly GroupAnswer[]): string[] {
  return alignWords(groups.toSorted((a, b) => (a.group < b.group ? -1 : 1)).map(formatGroup))
}

/** Its members, one a line. */
export function formatMembers({ members }: GroupAnswer): string[] {
  return alignWords(
    members.map(({ member_id: id, topics, partition_count: count }) => [
      `member_id=${id}`,
      `topics=${topics.join(',')}`,
      `partitions=${count}`
    ])
  )
}

/** What is committed, a partition a line. */
export function formatOffsets({ offsets }: OffsetsOfGroup): string[] {
  const rows = Object.entries(offsets).flatMap(([topic, partitions]) => {
    return Object.entries(partitions).map(([partition, offset]) => {
      return [`topic=${topic}`, `partition=${partition}`, `offset=${offset}`]
    })
  })
  return rows.length === 0 ? ['(no offsets)'] : alignWords(rows)
}

/** The partitions of a member, one a line. */
export function formatAssignment({ assignment }: AssignmentAnswer): string[] {
  if (assignment.length === 0) return ['(no partitions)']
  return alignWords(assignment.map(({ topic, partition }) => [`topic=${topic}`, `partition=${partition}`]))
}

export function formatHeartbeat(answer: HeartbeatAnswer): string {
  return `status=${answer.status} generation=${answer.generation ?? answer.current_generation ?? 'unknown'}`
}
