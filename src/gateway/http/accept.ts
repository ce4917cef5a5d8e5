/**
 * Which of the two forms of a record body a request is in, which one its answer is to have, and whether events are asked for.
 * Pure; main thread.
 * Media types are compared whole and without regard to case. Weights do not rank: `q=0` alone counts, it excludes.
 */

/** What JSON is labelled with. */
export const JSON_TYPE = 'application/json'

/** What a MessagePack answer is labelled with (registered with IANA). */
export const MSGPACK_TYPE = 'application/msgpack'

const EVENTS_TYPE = 'text/event-stream'

/** The names that were in use before it was registered mean the same. */
const msgpackTypes: ReadonlySet<string> = new Set([MSGPACK_TYPE, 'application/x-msgpack', 'application/vnd.msgpack'])

/** A Content-Type without its parameters, in lower case. */
export function mediaTypeOf(contentType: string): string {
  // What nearly every client sends.
  if (contentType === JSON_TYPE) return JSON_TYPE
  return (contentType.split(';', 1)[0] ?? '').trim().toLowerCase()
}

/** @param mediaType as of mediaTypeOf. */
export function isMsgpack(mediaType: string): boolean {
  return msgpackTypes.has(mediaType)
}

/** `q=0`, `q=0.000`: that type is not wanted. */
function isExcluded(parameters: readonly string[]): boolean {
  return parameters.some(parameter => /^\s*q\s*=\s*0(\.0*)?\s*$/i.test(parameter))
}

/**
 * True if an Accept header asks for MessagePack: it is named, and JSON is not named before it.
 * @param accept as sent; empty: there is none. Wildcards mean JSON.
 */
export function wantsMsgpack(accept: string): boolean {
  if (accept.length < MSGPACK_TYPE.length) return false
  for (const part of accept.split(',')) {
    const [type, ...parameters] = part.split(';')
    const mediaType = mediaTypeOf(type ?? '')
    if (mediaType !== JSON_TYPE && !isMsgpack(mediaType)) continue
    if (!isExcluded(parameters)) return mediaType !== JSON_TYPE
  }
  return false
}

/**
 * True if an Accept header names server-sent events, as EventSource does. @param accept as sent; empty: there is none.
 * Wildcards do not count: they come from whatever can read an answer with any status.
 */
export function asksForEvents(accept: string): boolean {
  if (accept.length < EVENTS_TYPE.length) return false
  return accept.split(',').some(part => {
    const [type, ...parameters] = part.split(';')
    return mediaTypeOf(type ?? '') === EVENTS_TYPE && !isExcluded(parameters)
  })
}
