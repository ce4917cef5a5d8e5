/** What the documentation says of the routes of the schema registry. Pure data. */
import { compatibilityModes, schemaTypes } from '../../../model/schemas.ts'
import { json, jsonBody, type Parameters, type RouteDocs } from './route-docs.ts'
import { choice, fields, list, noun, orNull, text, u32, whole } from './schema.ts'

const path = { subject: { about: 'Name of the subject.', schema: noun('TopicName') } } as const satisfies Parameters

/** A change of the registry is on disk before it is answered. */
const changeErrors = ['DISK_FULL', 'OVERLOADED'] as const

const chosen = jsonBody(
  fields({}, { compatibility: orNull(choice(compatibilityModes, 'Left out or null: none of its own.')) })
)

export const schemaDocs = {
  register: {
    id: 'registerSchema',
    tag: 'schemas',
    about: 'Add a version to a subject; it must suit the ones before.',
    details: 'Every registration has a new id, also of a text that is there.',
    body: jsonBody(
      fields(
        { subject: noun('TopicName'), schema: text('1 byte to 512 KiB of it.') },
        { type: orNull(choice(schemaTypes, '', { default: 'json_schema' })) }
      )
    ),
    answers: { 200: json('It is there, on disk.', fields({ id: whole() })) },
    errors: [
      'NAME_INVALID',
      'SCHEMA_TOO_LARGE',
      'SCHEMAS_TOO_MANY',
      'SCHEMA_INVALID',
      'SCHEMA_INCOMPATIBLE',
      'SCHEMA_TIMEOUT',
      ...changeErrors
    ]
  },
  list: {
    id: 'listSchemas',
    tag: 'schemas',
    about: 'All versions of all subjects that the key can read.',
    answers: { 200: json('By id.', list(noun('SchemaVersion'))) },
    errors: ['OVERLOADED']
  },
  byId: {
    id: 'readSchema',
    tag: 'schemas',
    about: 'The schema that has an id.',
    path: { schema_id: { about: 'Of the schema.', schema: whole() } },
    answers: { 200: json('It, with a subject that has it.', noun('SchemaVersion')) },
    errors: ['SCHEMA_NOT_FOUND', 'OVERLOADED']
  },
  subjects: {
    id: 'listSubjects',
    tag: 'schemas',
    about: 'Names of the subjects that the key can read.',
    answers: { 200: json('Sorted.', fields({ subjects: list(noun('TopicName')) })) },
    errors: ['OVERLOADED']
  },
  versions: {
    id: 'listVersions',
    tag: 'schemas',
    about: 'The versions that a subject has.',
    path,
    answers: { 200: json('Ascending.', fields({ subject: noun('TopicName'), versions: list(u32()) })) },
    errors: ['SUBJECT_NOT_FOUND']
  },
  version: {
    id: 'readVersion',
    tag: 'schemas',
    about: 'A version of a subject by its number, or the latest.',
    path: { ...path, version: { about: 'Of the subject.', schema: { oneOf: [u32(), choice(['latest'])] } } },
    answers: { 200: json('The schema.', noun('SchemaVersion')) },
    errors: ['SUBJECT_NOT_FOUND', 'VERSION_NOT_FOUND', 'OVERLOADED']
  },
  mode: {
    id: 'readCompatibility',
    tag: 'schemas',
    about: 'The compatibility mode that was chosen for a subject; null: the general one counts.',
    path,
    answers: { 200: json('The mode.', noun('Compatibility')) },
    errors: ['SUBJECT_NOT_FOUND']
  },
  setMode: {
    id: 'chooseCompatibility',
    tag: 'schemas',
    about: 'Choose the compatibility mode of a subject; null: the general one counts again.',
    path,
    body: chosen,
    answers: { 200: json('As it is now.', noun('Compatibility')) },
    errors: ['NAME_INVALID', 'SCHEMAS_TOO_MANY', ...changeErrors]
  },
  generalMode: {
    id: 'readGeneralCompatibility',
    tag: 'schemas',
    about: 'The compatibility mode of subjects that have none of their own.',
    answers: { 200: json('The mode.', noun('Compatibility')) }
  },
  setGeneralMode: {
    id: 'chooseGeneralCompatibility',
    tag: 'schemas',
    about: 'Choose the compatibility mode of subjects that have none of their own; null: `default`.',
    body: chosen,
    answers: { 200: json('As it is now.', noun('Compatibility')) },
    errors: changeErrors
  }
} as const satisfies Record<string, RouteDocs>
