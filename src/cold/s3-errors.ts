/**
 * What the AWS SDK throws, told apart into the four codes of ColdError. Pure, on the thread of the store.
 *
 *   404 NoSuchKey, NotFound                        missing      (s3-bucket asks whether it is the bucket that is gone)
 *   404 NoSuchBucket                               refused
 *   412, 416                                       damaged      it was replaced while it was read; it is shorter
 *   408, 409, 425, 429, every 5xx but 501          unavailable
 *   RequestTimeout, SlowDown, …, whatever status   unavailable
 *   other 3xx and 4xx, 501                         refused      wrong region, key, permission, request
 *   no credentials found                           refused
 *   no answer: network, timeout, closed            unavailable
 */
import { S3ServiceException } from '@aws-sdk/client-s3'
import { ColdError, type ColdErrorCode } from './object-store.ts'

const passing: readonly string[] = ['RequestTimeout', 'SlowDown', 'ServiceUnavailable', 'InternalError', 'Throttling']
const passingStatuses: readonly number[] = [408, 409, 425, 429]

/** @param what the object or the action, and where: begins the message. The error itself becomes the cause. */
export function toColdError(error: unknown, what: string): ColdError {
  if (error instanceof ColdError) return error
  return new ColdError(codeOf(error), `${what}: ${reasonOf(error)}`, error)
}

/** True if the service says that it does not have this kind of request. */
export function isUnsupported(error: unknown): boolean {
  const status = statusOf(error)
  return status === 501 || status === 405
}

/** True if the answer was 404 and does not say of what: HEAD has no body. */
export function isBareNotFound(error: unknown): boolean {
  return statusOf(error) === 404 && error instanceof Error && error.name !== 'NoSuchBucket'
}

function codeOf(error: unknown): ColdErrorCode {
  if (!(error instanceof S3ServiceException)) {
    return error instanceof Error && error.name === 'CredentialsProviderError' ? 'refused' : 'unavailable'
  }
  const status = statusOf(error) ?? 500
  if (passing.includes(error.name) || passingStatuses.includes(status)) return 'unavailable'
  if (error.name === 'NoSuchBucket') return 'refused'
  if (status === 404) return 'missing'
  if (status === 412 || status === 416) return 'damaged'
  return status >= 500 && status !== 501 ? 'unavailable' : 'refused'
}

function statusOf(error: unknown): number | undefined {
  return error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const status = statusOf(error)
  const name = error.message.includes(error.name) ? '' : `${error.name}: `
  return `${name}${error.message}${status === undefined ? '' : ` (HTTP ${status})`}`
}
