/** What becomes at once of a request that is submitted. */

/**
 * taken: the caller will hear. full: a ring has no room; nothing was taken; submit again after whenRoom called back.
 * A refusal (unknown topic, bad partition…) is `taken` too: it comes as onProduceFailed or onReadFailed.
 * held: taken, and copied, but not dispatched yet: onDispatched says when. A caller whose requests must keep their
 * order submits no further ones to that topic until then. Without a producer id only those are held whose topic is validated,
 * or was a moment ago.
 */
export const submitOutcomes = { taken: 0, full: 1, held: 2 } as const
export type SubmitOutcome = (typeof submitOutcomes)[keyof typeof submitOutcomes]
