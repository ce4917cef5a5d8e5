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

/** What only this connection's own answers can end is looked at after each delivery; its inflater calls by itself. */
export function isOwnStall(stall: Stall): boolean {
  if (stall === 'inflating' || stall === 'noInflatingRoom') return true
  return stall === 'held' || stall === 'inFlight' || stall === 'shareFull' || stall === 'unsent'
}
