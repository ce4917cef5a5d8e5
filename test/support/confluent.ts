/** Answers of the routes that look like Confluent's schema registry, refusals among them. */
import assert from 'node:assert/strict'
import type { HttpAnswer } from './http-api.ts'

/** What those routes answer with. */
export const CONFLUENT_TYPE = 'application/vnd.schemaregistry.v1+json'

/** A refusal in their shape: two fields and no more, and the id of the request in a header. */
export function assertConfluentRefused(
  answer: HttpAnswer,
  status: number,
  errorCode: number,
  fragments: readonly (string | number)[] = []
): void {
  const { headers, text } = answer
  assert.deepEqual([answer.status, headers.get('content-type')], [status, CONFLUENT_TYPE], text.slice(0, 500))
  assert.match(headers.get('x-request-id') ?? '', /^[0-9a-f]{8}$/)
  const body = JSON.parse(text) as { error_code: number; message: string }
  assert.deepEqual(Object.keys(body), ['error_code', 'message'])
  assert.equal(body.error_code, errorCode, text)
  for (const fragment of fragments)
    assert.ok(body.message.includes(String(fragment)), `'${body.message}' does not name ${fragment}`)
}
