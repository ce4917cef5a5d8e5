/** Why a produce that had to wait is not dispatched any more. Pure. */
import { denialOf } from '../model/access.ts'
import { BrokerError } from '../model/errors.ts'
import type { Principal } from '../model/principal.ts'
import type { Topic } from '../model/topic.ts'

/** @returns null: nothing has changed. Nothing of it was written. */
export function lateRefusalOf(
  catalog: { topicNamed(name: string): Topic | undefined },
  who: Principal,
  { id, name: topic }: Topic
): BrokerError | null {
  const denial = denialOf(who, 'produce', topic)
  if (denial !== null) return denial
  // One that was made anew under its name is another topic.
  const isThere = catalog.topicNamed(topic)?.id === id
  return isThere ? null : new BrokerError('TOPIC_NOT_FOUND', { topic })
}
