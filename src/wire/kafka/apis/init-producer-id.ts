/** InitProducerId (22). Pure, any thread. */
import { apiOf } from '../message.ts'
import { int16, int32, int64Exact, string } from '../schema.ts'

export const initProducerId = apiOf('InitProducerId', {
  key: 22,
  first: 0,
  last: 4,
  flexibleSince: 2,
  request: {
    transactionalId: string({ nullableSince: 0 }),
    transactionTimeoutMs: int32(),
    producerId: int64Exact({ since: 3, default: -1n }),
    producerEpoch: int16({ since: 3, default: -1 })
  },
  response: {
    throttleTimeMs: int32({ default: 0, ignorable: true }),
    errorCode: int16(),
    producerId: int64Exact({ default: -1n }),
    producerEpoch: int16()
  }
})
