/** What the documentation says of the routes that tell of the broker itself. Pure data. */
import { json, type RouteDocs } from './route-docs.ts'
import { choice, fields, noun, text } from './schema.ts'

/** Media type of Prometheus' text format. */
const METRICS_TYPE = 'text/plain; version=0.0.4'

export const healthDocs = {
  metrics: {
    id: 'readMetrics',
    tag: 'health',
    about: 'What the broker counts, in Prometheus text format.',
    answers: { 200: { about: 'Of what the key may read.', content: { [METRICS_TYPE]: text() } } },
    errors: ['OVERLOADED']
  },
  healthz: {
    id: 'readHealth',
    tag: 'health',
    about: 'The process lives; with the number of topics.',
    answers: { 200: json('It does.', noun('Health')) }
  },
  readyz: {
    id: 'readReadiness',
    tag: 'health',
    about: 'The broker serves requests.',
    answers: {
      200: json(
        'It does.',
        fields(
          { status: choice(['ready']), message: text() },
          { durability: choice(['deferred'], 'Only where acknowledgements may precede the sync.') }
        )
      ),
      503: json('Not yet, or not any more.', noun('NotReady'))
    },
    errors: ['NOT_READY']
  },
  openApi: {
    id: 'readApiDescription',
    tag: 'health',
    about: 'This description of the API.',
    answers: { 200: json('OpenAPI 3.1.', { type: 'object' }) },
    errors: ['OVERLOADED']
  }
} as const satisfies Record<string, RouteDocs>
