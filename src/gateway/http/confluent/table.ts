/**
 * The routes that look like Confluent's schema registry, for the clients that know it. Part of the table of routes; main
 * thread. They stand on the same use cases as the native ones, and take the same of a key.
 */
import { confluentDocs } from '../openapi/confluent-docs.ts'
import { route, type Route } from '../route.ts'
import { CONFLUENT_PREFIX } from './face.ts'
import {
  chooseGeneralLevel,
  chooseLevel,
  compareWithAll,
  compareWithVersion,
  removeGeneralLevel,
  removeLevel,
  showGeneralLevel,
  showLevel,
  showMode
} from './level-routes.ts'
import {
  listPlaces,
  listSubjects,
  listSubjectsOfSchema,
  listTypes,
  listVersions,
  lookUpSchema,
  registerSchema,
  showSchema,
  showSchemaText,
  showVersion,
  showVersionText
} from './schema-routes.ts'

const subjects = `${CONFLUENT_PREFIX}/subjects` as const
const versions = `${subjects}/:subject/versions` as const
const ids = `${CONFLUENT_PREFIX}/schemas/ids` as const
const config = `${CONFLUENT_PREFIX}/config` as const
const compared = `${CONFLUENT_PREFIX}/compatibility/subjects/:subject/versions` as const

export const confluentRoutes: readonly Route[] = [
  route('GET', subjects, listSubjects, 'list schemas', confluentDocs.subjects),
  route('POST', `${subjects}/:subject`, lookUpSchema, 'read schema', confluentDocs.lookUp),
  route('GET', versions, listVersions, 'read schema', confluentDocs.versions),
  route('POST', versions, registerSchema, 'register schema', confluentDocs.register),
  route('GET', `${versions}/:version`, showVersion, 'read schema', confluentDocs.version),
  route('GET', `${versions}/:version/schema`, showVersionText, 'read schema', confluentDocs.versionText),
  route('GET', `${CONFLUENT_PREFIX}/schemas/types`, listTypes, 'list schemas', confluentDocs.types),
  route('GET', `${ids}/:id`, showSchema, 'read schema', confluentDocs.schema),
  route('GET', `${ids}/:id/schema`, showSchemaText, 'read schema', confluentDocs.schemaText),
  route('GET', `${ids}/:id/versions`, listPlaces, 'read schema', confluentDocs.places),
  route('GET', `${ids}/:id/subjects`, listSubjectsOfSchema, 'read schema', confluentDocs.subjectsOfSchema),
  route('GET', config, showGeneralLevel, 'list schemas', confluentDocs.generalLevel),
  route('PUT', config, chooseGeneralLevel, 'manage compatibility', confluentDocs.chooseGeneralLevel),
  route('DELETE', config, removeGeneralLevel, 'manage compatibility', confluentDocs.removeGeneralLevel),
  route('GET', `${config}/:subject`, showLevel, 'read schema', confluentDocs.level),
  route('PUT', `${config}/:subject`, chooseLevel, 'manage compatibility', confluentDocs.chooseLevel),
  route('DELETE', `${config}/:subject`, removeLevel, 'manage compatibility', confluentDocs.removeLevel),
  route('POST', compared, compareWithAll, 'read schema', confluentDocs.compareWithAll),
  route('POST', `${compared}/:version`, compareWithVersion, 'read schema', confluentDocs.compareWithVersion),
  route('GET', `${CONFLUENT_PREFIX}/mode`, showMode, 'list schemas', confluentDocs.mode)
]
