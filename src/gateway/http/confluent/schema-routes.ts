/**
 * Subjects, versions and ids as Confluent's schema registry has them. Main thread. What differs from the native routes is the
 * shape, and that a text that is there keeps its id.
 */
import type { SchemaVersion } from '../../../model/schemas.ts'
import {
  confluentTypes,
  writeConfluentPlace,
  writeConfluentSchema,
  writeConfluentVersion
} from '../../../wire/json/confluent-json.ts'
import { writeSchemaId } from '../../../wire/json/schemas-json.ts'
import type { BodySink } from '../engines/engine.ts'
import type { Exchange } from '../exchange.ts'
import { withSchemaBody } from '../json-body.ts'
import { answerInPieces } from '../pieces-answer.ts'
import { readSchemaId } from '../schemas/schema-form.ts'
import { readSchema, readVersion, schemaFields } from './form.ts'

/** A list without a field around it. */
function answerList<Item>(exchange: Exchange, items: readonly Item[], write: (item: Item) => string): null {
  answerInPieces(exchange, { opening: '[', items, write, closing: ']' })
  return null
}

/** One version, which may have some MiB of JSON. */
function answerVersion(exchange: Exchange, version: SchemaVersion, write: (version: SchemaVersion) => string): null {
  answerInPieces(exchange, { opening: '', items: [version], write, closing: '' })
  return null
}

const textOf = ({ schema }: SchemaVersion): string => schema

function versionsOfId(exchange: Exchange): readonly SchemaVersion[] {
  return exchange.services.broker.schemas.versionsOfId(exchange.who, readSchemaId(exchange.name))
}

function versionOf(exchange: Exchange): SchemaVersion {
  const [subject = '', version = ''] = exchange.names
  return exchange.services.broker.schemas.version(exchange.who, subject, readVersion(version))
}

/** `GET /confluent/subjects` */
export function listSubjects(exchange: Exchange): null {
  return answerList(exchange, exchange.services.broker.schemas.subjects(exchange.who), JSON.stringify)
}

/** `GET /confluent/subjects/:subject/versions` */
export function listVersions(exchange: Exchange): null {
  const versions = exchange.services.broker.schemas.versionsOf(exchange.who, exchange.name)
  // Theirs, not the list, which grows while a long answer is written.
  const numbers = versions.map(({ version }) => version)
  return answerList(exchange, numbers, String)
}

/** `POST /confluent/subjects/:subject/versions`: the id, which is that of the same text anywhere. */
export function registerSchema(exchange: Exchange): BodySink | null {
  const { name: subject, services, who } = exchange
  return withSchemaBody(exchange, schemaFields, value => {
    const registered = services.broker.schemas.registerOnce(who, readSchema(subject, value))
    exchange.answerWith(
      200,
      registered.then(({ id }) => writeSchemaId(id))
    )
  })
}

/** `POST /confluent/subjects/:subject`: the version that has this text. */
export function lookUpSchema(exchange: Exchange): BodySink | null {
  const { name: subject, services, who } = exchange
  return withSchemaBody(exchange, schemaFields, value => {
    answerVersion(exchange, services.broker.schemas.lookup(who, readSchema(subject, value)), writeConfluentVersion)
  })
}

/** `GET /confluent/subjects/:subject/versions/:version` */
export function showVersion(exchange: Exchange): null {
  return answerVersion(exchange, versionOf(exchange), writeConfluentVersion)
}

/** `GET /confluent/subjects/:subject/versions/:version/schema`: the text alone, as it was registered. */
export function showVersionText(exchange: Exchange): null {
  return answerVersion(exchange, versionOf(exchange), textOf)
}

/** `GET /confluent/schemas/ids/:id` */
export function showSchema(exchange: Exchange): null {
  const schema = exchange.services.broker.schemas.byId(exchange.who, readSchemaId(exchange.name))
  return answerVersion(exchange, schema, writeConfluentSchema)
}

/** `GET /confluent/schemas/ids/:id/schema`: the text alone. */
export function showSchemaText(exchange: Exchange): null {
  const schema = exchange.services.broker.schemas.byId(exchange.who, readSchemaId(exchange.name))
  return answerVersion(exchange, schema, textOf)
}

/** `GET /confluent/schemas/ids/:id/versions`: where it is, of what the key may read. */
export function listPlaces(exchange: Exchange): null {
  return answerList(exchange, versionsOfId(exchange), writeConfluentPlace)
}

/** `GET /confluent/schemas/ids/:id/subjects` */
export function listSubjectsOfSchema(exchange: Exchange): null {
  const subjects = new Set(versionsOfId(exchange).map(({ subject }) => subject))
  return answerList(exchange, [...subjects], JSON.stringify)
}

/** `GET /confluent/schemas/types` */
export function listTypes(exchange: Exchange): null {
  exchange.sendJson(200, JSON.stringify(Object.values(confluentTypes)))
  return null
}
