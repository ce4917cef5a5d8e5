/** What a connection's frames wait for. Main thread only. */

/** Why the whole frame in front is not taken. */
export type Stall =
  | 'none'
  | 'inflating'
  | 'noInflatingRoom'
  | 'held'
  | 'inFlight'
  | 'unsent'
  | 'noRoom'
  | 'shareFull'
  | 'noReplyBytes'
  | 'noMemory'

/**
 * What only this connection's own answers can end is looked at after each delivery; its inflater, and what it receives into, call
 * by themselves.
 */
export function isOwnStall(stall: Stall): boolean {
  if (stall === 'inflating' || stall === 'noInflatingRoom' || stall === 'noMemory') return true
  return stall === 'held' || stall === 'inFlight' || stall === 'shareFull' || stall === 'unsent'
}
