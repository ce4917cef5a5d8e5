/** Samples of the routes for Confluent's clients, from which bad input is made: part of those in bad-input.ts. */

const confluentSchema = {
  body: { schema: '{}', schemaType: 'JSON', references: [] },
  fields: {
    schema: { kind: 'text', isRequired: true },
    schemaType: { kind: 'choice' },
    references: { kind: 'array' }
  }
} as const
const confluentLevel = {
  body: { compatibility: 'BACKWARD' },
  fields: { compatibility: { kind: 'choice', isRequired: true } }
} as const

/** By method and pattern, as in the table of routes. */
export const confluentSamples = {
  'GET /confluent/subjects': { path: '/confluent/subjects' },
  'POST /confluent/subjects/:subject': { path: '/confluent/subjects/there', ...confluentSchema },
  'GET /confluent/subjects/:subject/versions': { path: '/confluent/subjects/there/versions' },
  'POST /confluent/subjects/:subject/versions': {
    path: '/confluent/subjects/there/versions',
    ...confluentSchema,
    refusedBody: { ...confluentSchema.body, schema: '{' }
  },
  'GET /confluent/subjects/:subject/versions/:version': { path: '/confluent/subjects/there/versions/latest' },
  'GET /confluent/subjects/:subject/versions/:version/schema': { path: '/confluent/subjects/there/versions/-1/schema' },
  'GET /confluent/schemas/types': { path: '/confluent/schemas/types' },
  'GET /confluent/schemas/ids/:id': { path: '/confluent/schemas/ids/1' },
  'GET /confluent/schemas/ids/:id/schema': { path: '/confluent/schemas/ids/1/schema' },
  'GET /confluent/schemas/ids/:id/versions': { path: '/confluent/schemas/ids/1/versions' },
  'GET /confluent/schemas/ids/:id/subjects': { path: '/confluent/schemas/ids/1/subjects' },
  // One more name behind these, `..` too, is that of a subject.
  'GET /confluent/config': { path: '/confluent/config', takesAnyName: true },
  'PUT /confluent/config': { path: '/confluent/config', takesAnyName: true, ...confluentLevel },
  'DELETE /confluent/config': { path: '/confluent/config', takesAnyName: true },
  'GET /confluent/config/:subject': {
    path: '/confluent/config/there',
    takesAnyName: true,
    query: { defaultToGlobal: { kind: 'choice', value: 'true' } }
  },
  // Of `..`, which a subject may be called.
  'PUT /confluent/config/:subject': { path: '/confluent/config/there', takesAnyName: true, ...confluentLevel },
  'DELETE /confluent/config/:subject': { path: '/confluent/config/there', isOfNothing: true, takesAnyName: true },
  'POST /confluent/compatibility/subjects/:subject/versions': {
    path: '/confluent/compatibility/subjects/there/versions',
    takesAnyName: true,
    ...confluentSchema,
    query: { verbose: { kind: 'choice', value: 'true' } }
  },
  'POST /confluent/compatibility/subjects/:subject/versions/:version': {
    path: '/confluent/compatibility/subjects/there/versions/latest',
    takesAnyName: true,
    ...confluentSchema,
    query: { verbose: { kind: 'choice', value: 'true' } }
  },
  'GET /confluent/mode': { path: '/confluent/mode' }
} as const
