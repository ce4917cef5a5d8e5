/** How a stream reads, out of its query. Pure; main thread. */
import { BrokerError } from '../../../model/errors.ts'
import { limits } from '../../../model/limits.ts'
import { readFormats } from '../../../model/requests.ts'
import type { HttpSettings } from '../exchange.ts'
import { clamp, readIsBase64, readU64 } from '../query.ts'
import type { StreamForm } from './stream-hub.ts'

/** The parameters that say how it reads. */
export const streamNames = ['encoding', 'max_bytes'] as const

/** Of a partition in an id: the most digits that its next offset has, and a comma. */
const ID_BYTES = 21

/** What of it does not depend on how many partitions there are. @throws BrokerError FIELD_INVALID */
export function readStreamForm(
  parameters: ReadonlyMap<string, string>,
  { maxFetchBytes, maxFetchRecords }: Pick<HttpSettings, 'maxFetchBytes' | 'maxFetchRecords'>
): StreamForm {
  const format = readIsBase64(parameters) ? readFormats.framesBase64 : readFormats.framesUtf8
  const bytesMax = Math.min(limits.streamReadBytesMax, maxFetchBytes)
  const maxBytes = clamp(readU64(parameters, 'max_bytes') ?? BigInt(bytesMax), 1, bytesMax)
  return { format, maxBytes, maxRecords: maxFetchRecords }
}

/** The same with as many records at most as have ids of streamReadBytesMax together. */
export function withIdsOf(form: StreamForm, partitionCount: number): StreamForm {
  const recordsMax = Math.max(1, Math.floor(limits.streamReadBytesMax / (partitionCount * ID_BYTES)))
  return { ...form, maxRecords: Math.min(form.maxRecords, recordsMax) }
}

/** @throws BrokerError FIELD_INVALID: a stream has no room for so many. */
export function checkPartitionCount(count: number, field: string, problem: string): void {
  if (count <= limits.streamPartitionsMax) return
  throw new BrokerError('FIELD_INVALID', { field, problem: `${problem}: ${limits.streamPartitionsMax} at most` })
}
