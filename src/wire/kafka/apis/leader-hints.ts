/** Where the leader of a partition is, as answers to Produce and Fetch tell it (KIP-951). Tables only. */
import { int32, string } from '../schema.ts'

export const leaderIdAndEpoch = { leaderId: int32({ default: -1 }), leaderEpoch: int32({ default: -1 }) }

export const nodeEndpoint = {
  nodeId: int32(),
  host: string(),
  port: int32(),
  rack: string({ nullableSince: 0, default: null })
}
