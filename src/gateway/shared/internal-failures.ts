/**
 * What must not reach a caller of what went wrong inside: a stack, a path, a cause. The log has it, under the id that the
 * caller is told (D15). Main thread.
 */
import type { Logger } from '../../base/logger.ts'
import { errorText, type BrokerError } from '../../model/errors.ts'
import { newRequestId } from './request-ids.ts'

/** True for errors of which a caller is told the id alone. */
export function isInternal(error: BrokerError): boolean {
  return error.spec.http === 500
}

/** What a caller is told of an error, and the id by which the log has it: the one that it was logged under before, if it was. */
export function toldOf(error: BrokerError): { readonly requestId: string; readonly text: string } {
  const known = error.details['id']
  const requestId = error.code === 'INTERNAL' && typeof known === 'string' ? known : newRequestId()
  return { requestId, text: isInternal(error) ? errorText('INTERNAL', { id: requestId }) : error.message }
}

/** Writes the log line that an id leads to. @param context of the request: what was asked, of whom. */
export function logFailure(logger: Logger, requestId: string, error: BrokerError, context: object): void {
  const { cause, code, message } = error
  const bug = cause instanceof Error ? { cause: cause.message, stack: cause.stack } : { cause }
  logger.error({ request_id: requestId, ...context, code, text: message, ...bug }, 'a request failed')
}
