/**
 * Which requests are for the routes that look like Confluent's schema registry, and which media types those speak. The path
 * decides, so that a request without a route, a key or a sound body is answered in that shape too. Pure; main thread.
 */
import { JSON_TYPE } from '../accept.ts'

/** Before the paths of that API: a client is given it as part of the registry's address. */
export const CONFLUENT_PREFIX = '/confluent'

/** What answers are labelled with, errors too. */
export const CONFLUENT_TYPE = 'application/vnd.schemaregistry.v1+json'

/** What a body may be labelled with, in lower case. */
export const confluentBodyTypes: ReadonlySet<string> = new Set([
  CONFLUENT_TYPE,
  'application/vnd.schemaregistry+json',
  JSON_TYPE
])

/** @param path as sent. */
export function isConfluentPath(path: string): boolean {
  return (
    path.startsWith(CONFLUENT_PREFIX) &&
    (path.length === CONFLUENT_PREFIX.length || path[CONFLUENT_PREFIX.length] === '/')
  )
}

/** @param mediaType in lower case, without parameters. */
export function isConfluentBody(mediaType: string): boolean {
  return confluentBodyTypes.has(mediaType)
}
