/** This broker as a member of a cluster of one: what clients are told wherever the protocol asks who leads. */

/** The id of the only broker, which is the controller, too. */
export const NODE_ID = 1
/** Of every partition: that of this broker. */
export const COPIES = 1

/** Whether the copies of a partition are to be here, and nowhere else. */
export function isHereAlone(brokerIds: readonly number[]): boolean {
  return brokerIds.length === COPIES && brokerIds[0] === NODE_ID
}
