/** Which protocol the members of a classic group use: one that all of them know. Pure. */
import { assert } from '../../../base/assert.ts'
import type { ClassicProtocol } from '../../../model/classic-groups.ts'

interface Voter {
  readonly protocols: readonly ClassicProtocol[]
}

/** Whether one of these protocols is known to all of the others. */
export function hasInCommon(protocols: readonly ClassicProtocol[], others: readonly Voter[]): boolean {
  const known = knownBy(others)
  return protocols.some(({ name }) => others.length === 0 || known.get(name) === others.length)
}

/**
 * The one that most members like best of those that all know; of equals, the one that was voted for first.
 * @param voters at least one, with something in common.
 */
export function selectProtocol(voters: readonly Voter[]): string {
  const known = knownBy(voters)
  const votes = new Map<string, number>()
  for (const { protocols } of voters) {
    const best = protocols.find(({ name }) => known.get(name) === voters.length)
    assert(best !== undefined, 'members of a group have a protocol in common')
    votes.set(best.name, (votes.get(best.name) ?? 0) + 1)
  }
  const [first, ...others] = votes
  assert(first !== undefined, 'somebody votes')
  return others.reduce((most, vote) => (vote[1] > most[1] ? vote : most), first)[0]
}

/** How many know each protocol. */
function knownBy(voters: readonly Voter[]): Map<string, number> {
  const known = new Map<string, number>()
  for (const { protocols } of voters) {
    for (const name of new Set(protocols.map(protocol => protocol.name))) known.set(name, (known.get(name) ?? 0) + 1)
  }
  return known
}
