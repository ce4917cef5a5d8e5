/** This broker as a member of a cluster of one: what clients are told wherever the protocol asks who leads. */

/** The id of the only broker, which is the controller, too. */
export const NODE_ID = 1
/** The epoch of every leader: it never changes hands. */
export const LEADER_EPOCH = 0
