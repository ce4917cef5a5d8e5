/** The calls of the schema registry. Shapes as the API has them; any thread. */
import type { Answer, HttpClient } from './http-client.ts'

/** A version of a subject. */
export interface SchemaAnswer {
  readonly id: number
  readonly subject: string
  readonly type: string
  readonly schema: string
  readonly created_at_ms: number
}

export function registerSchema(
  client: HttpClient,
  request: { readonly subject: string; readonly type: string; readonly schema: string }
): Promise<Answer<{ readonly id: number }>> {
  return client.call('POST', '/schemas', JSON.stringify(request))
}

export function schemaById(client: HttpClient, id: number): Promise<Answer<SchemaAnswer>> {
  return client.call('GET', `/schemas/${id}`)
}

/** Of all subjects that the key can read. */
export function listSchemas(client: HttpClient): Promise<Answer<readonly SchemaAnswer[]>> {
  return client.call('GET', '/schemas')
}

export function latestSchema(client: HttpClient, subject: string): Promise<Answer<SchemaAnswer>> {
  return client.call('GET', `/subjects/${encodeURIComponent(subject)}/versions/latest`)
}
