/** Which topic a request means that may name it by its id. Main thread. */
import type { Principal } from '../../model/principal.ts'
import { ZERO_UUID } from '../../wire/kafka/schema.ts'
import type { KafkaServices } from './handler.ts'

/** @returns the name of the live topic with that id that the caller may read, or null. */
export function nameOfId({ broker, topicIds }: KafkaServices, who: Principal, uuid: string): string | null {
  const id = uuid === ZERO_UUID ? null : topicIds.idOf(uuid)
  return id === null ? null : broker.topicNameOf(who, id)
}
