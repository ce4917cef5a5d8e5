/** The routes of the schema registry. Main thread. */
import { authorise } from '../../../model/access.ts'
import type { SchemaVersion } from '../../../model/schemas.ts'
import { writeCompatibility, writeSchema, writeSchemaId, writeVersions } from '../../../wire/json/schemas-json.ts'
import type { BodySink } from '../engines/engine.ts'
import type { Exchange } from '../exchange.ts'
import { withJsonBody, withSchemaBody } from '../json-body.ts'
import { answerInPieces } from '../pieces-answer.ts'
import { readCompatibility, readRegister, readSchemaId, readVersion, registerFields } from './schema-form.ts'

/** One version may have some MiB of JSON. */
function answerSchema(exchange: Exchange, version: SchemaVersion): null {
  answerInPieces(exchange, { opening: '', items: [version], write: writeSchema, closing: '' })
  return null
}

/** `POST /schemas`: 200 with the id, which is a new one in any case. */
export function registerSchema(exchange: Exchange): BodySink | null {
  const { schemas } = exchange.services.broker
  return withSchemaBody(exchange, registerFields, value => {
    const registered = schemas.register(exchange.who, readRegister(value))
    exchange.answerWith(
      200,
      registered.then(({ id }) => writeSchemaId(id))
    )
  })
}

/** `GET /schemas`: all versions that the key may read, a list without a field around it. */
export function listSchemas(exchange: Exchange): null {
  const items = exchange.services.broker.schemas.list(exchange.who)
  answerInPieces(exchange, { opening: '[', items, write: writeSchema, closing: ']' })
  return null
}

/** `GET /schemas/:schema_id` */
export function schemaById(exchange: Exchange): null {
  return answerSchema(exchange, exchange.services.broker.schemas.byId(exchange.who, readSchemaId(exchange.name)))
}

/** `GET /subjects` */
export function listSubjects(exchange: Exchange): null {
  const items = exchange.services.broker.schemas.subjects(exchange.who)
  answerInPieces(exchange, { opening: '{"subjects":[', items, write: JSON.stringify, closing: ']}' })
  return null
}

/** `GET /subjects/:subject/versions` */
export function subjectVersions(exchange: Exchange): null {
  const { name: subject, services, who } = exchange
  exchange.sendJson(200, writeVersions(subject, services.broker.schemas.versionsOf(who, subject)))
  return null
}

/** `GET /subjects/:subject/versions/:version`: a number, or `latest`. */
export function subjectVersion(exchange: Exchange): null {
  const [subject = '', version = ''] = exchange.names
  const { schemas } = exchange.services.broker
  return answerSchema(exchange, schemas.version(exchange.who, subject, readVersion(version)))
}

/** `GET /subjects/:subject/config` */
export function subjectCompatibility(exchange: Exchange): null {
  exchange.sendJson(200, writeCompatibility(exchange.services.broker.schemas.modeOf(exchange.who, exchange.name)))
  return null
}

/** `PUT /subjects/:subject/config` */
export function setSubjectCompatibility(exchange: Exchange): BodySink | null {
  return setCompatibility(exchange, exchange.name)
}

/** `GET /admin/schemas/config` */
export function generalCompatibility(exchange: Exchange): null {
  authorise(exchange.who, 'manage compatibility')
  exchange.sendJson(200, writeCompatibility(exchange.services.broker.schemas.modeOf(exchange.who, null)))
  return null
}

/** `PUT /admin/schemas/config` */
export function setGeneralCompatibility(exchange: Exchange): BodySink | null {
  return setCompatibility(exchange, null)
}

/** @param subject null: the general mode. */
function setCompatibility(exchange: Exchange, subject: string | null): BodySink | null {
  const { schemas } = exchange.services.broker
  return withJsonBody(exchange, value => {
    const set = schemas.setMode(exchange.who, subject, readCompatibility(value))
    exchange.answerWith(
      200,
      set.then(() => writeCompatibility(schemas.modeOf(exchange.who, subject)))
    )
  })
}
