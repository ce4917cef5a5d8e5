/**
 * How many topics one request may change: as many as there can be. One that names more is refused whole, before anything is
 * looked at. Pure, any thread.
 */
import { limits } from '../../model/limits.ts'
import { kafkaErrors } from '../../wire/kafka/errors.ts'
import type { Told } from './refusals.ts'

/** @param field of the request that names them. @returns what is said of each of them, or null: there are not too many. */
export function refusalOfMany(field: string, count: number): Told | null {
  if (count <= limits.topicsMax) return null
  const errorMessage = `${field} has ${count} entries: the limit is ${limits.topicsMax}, so nothing of this request was done`
  return { errorCode: kafkaErrors.INVALID_REQUEST.code, errorMessage }
}
