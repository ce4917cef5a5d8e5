/** The batches of a broker that takes none: for tests of what is not about them. */
import type { BatchUseCases } from '../../src/model/batches.ts'
import { BrokerError } from '../../src/model/errors.ts'
import { submitOutcomes } from '../../src/model/requests.ts'

export const noBatches: BatchUseCases = {
  submitBatch(_who, _batch, caller) {
    queueMicrotask(() => caller.onBatchFailed(new BrokerError('STOPPING')))
    return submitOutcomes.taken
  },
  produceWaitMs: () => 0,
  readAllowance: () => null,
  allocateProducer: () => Promise.reject(new BrokerError('STOPPING'))
}
