/**
 * What each operation asks of a key: the one table that use cases, routes, documentation and tests read (spec 2.9, 19).
 *
 *   nothing  no key at all
 *   key      any key; what it may not read is left out of the answer
 *   read     a grant of read, write or admin that covers the topic
 *   write    a grant of write or admin that covers the topic
 *   group    the key that owns the group, or admin on `*`; topics that are named are to be readable besides
 *   admin    admin on `*`; on a prefix it is worth a write grant there
 */
import { BrokerError } from './errors.ts'
import type { Principal } from './principal.ts'

export const needs = ['nothing', 'key', 'read', 'write', 'group', 'admin'] as const
export type Need = (typeof needs)[number]

export const operations = {
  health: 'nothing',
  'describe api': 'nothing',
  metrics: 'key',
  'list topics': 'key',
  'list schemas': 'key',
  'read schema': 'read',
  'register schema': 'admin',
  'manage compatibility': 'admin',
  'describe topic': 'read',
  'list offsets': 'read',
  'read topic config': 'read',
  consume: 'read',
  produce: 'write',
  'take producer id': 'key',
  'create topic': 'admin',
  'change topic config': 'admin',
  'add partitions': 'admin',
  'delete topic': 'admin',
  'delete records': 'admin',
  'use group': 'group',
  'manage keys': 'admin',
  'manage producers': 'admin',
  'run cleaning': 'admin',
  'reset offsets': 'admin',
  'list cold segments': 'admin',
  'read replication': 'admin'
} as const satisfies Record<string, Need>
export type Operation = keyof typeof operations

/**
 * Lets a caller do something, or refuses.
 * @param topic its name, whether it exists or not; null: none is concerned. Of 'use group' only a revoked key is refused
 *   here: who owns the group is known elsewhere.
 * @throws BrokerError KEY_REVOKED, FORBIDDEN
 */
export function authorise(who: Principal, operation: Operation, topic: string | null = null): void {
  const denial = denialOf(who, operation, topic)
  if (denial !== null) throw denial
}

/** The same for hot calls: what authorise throws, or null. */
export function denialOf(who: Principal, operation: Operation, topic: string | null = null): BrokerError | null {
  if (who.isRevoked) return new BrokerError('KEY_REVOKED')
  const need = operations[operation]
  if (isAllowed(who, need, topic)) return null
  return new BrokerError('FORBIDDEN', { operation, need, on: need === 'admin' ? '*' : (topic ?? '*') })
}

function isAllowed(who: Principal, need: Need, topic: string | null): boolean {
  switch (need) {
    case 'nothing':
    case 'key':
    case 'group':
      return true
    case 'read':
      return topic === null ? who.isAdmin : who.mayRead(topic)
    case 'write':
      return topic === null ? who.isAdmin : who.mayWrite(topic)
    case 'admin':
      return who.isAdmin
  }
}
