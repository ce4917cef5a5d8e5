/** What the documentation says of the routes for the clients of Confluent's schema registry. Pure data. */
import { confluentLevels, confluentTypes } from '../../../wire/json/confluent-json.ts'
import { confluentBodyTypes, CONFLUENT_TYPE } from '../confluent/face.ts'
import type { AnswerDocs, Content, Parameters, RouteDocs } from './route-docs.ts'
import { choice, fields, list, noun, orNull, text, u32, whole, type Schema } from './schema.ts'

const subject = { subject: { about: 'Name of the subject.', schema: noun('TopicName') } } as const satisfies Parameters
const id = { id: { about: 'Of the schema.', schema: whole() } } as const satisfies Parameters
const version = {
  ...subject,
  version: { about: 'Of the subject.', schema: { oneOf: [u32('From 1.'), choice(['latest', '-1'])] } }
} as const satisfies Parameters

/** A change of the registry is on disk before it is answered. */
const changeErrors = ['DISK_FULL', 'OVERLOADED'] as const
const checkErrors = ['SCHEMA_INVALID', 'SCHEMA_TOO_LARGE', 'SCHEMA_TIMEOUT'] as const
const versionErrors = ['SUBJECT_NOT_FOUND', 'VERSION_NOT_FOUND', 'OVERLOADED'] as const

function answer(about: string, schema: Schema): AnswerDocs {
  return { about, content: { [CONFLUENT_TYPE]: schema } }
}

function bodyOf(schema: Schema): Content {
  return Object.fromEntries([...confluentBodyTypes].map(type => [type, schema]))
}

const schemaBody = bodyOf(
  fields(
    { schema: text('1 byte to 512 KiB of it.') },
    {
      schemaType: orNull(choice(Object.values(confluentTypes), '', { default: 'AVRO' })),
      references: { type: ['array', 'null'], items: false, description: 'Not supported: empty.' }
    }
  )
)

const level = choice(confluentLevels)
const levelBody = bodyOf(fields({ compatibility: choice(confluentLevels, 'In any case.') }))
/** The text of a schema, of whatever type: not a string of JSON. */
const schemaText: Schema = { description: 'As it was registered.' }

const levelAnswer = { 200: answer('The level.', fields({ compatibilityLevel: level })) } as const
const formerAnswer = { 200: answer('What counted until now.', fields({ compatibilityLevel: level })) } as const
const chosenAnswer = { 200: answer('As it is now.', fields({ compatibility: level })) } as const
const verdictAnswer = {
  200: answer('Whether it would.', fields({ is_compatible: { type: 'boolean' } }, { messages: list(text()) }))
} as const

const verbose = {
  verbose: { about: 'With the reasons.', schema: choice(['true', 'false'], '', { default: 'false' }) }
} as const satisfies Parameters

export const confluentDocs = {
  subjects: {
    id: 'listConfluentSubjects',
    tag: 'confluent',
    about: 'Names of the subjects that the key can read.',
    answers: { 200: answer('Sorted.', list(noun('TopicName'))) },
    errors: ['OVERLOADED']
  },
  lookUp: {
    id: 'lookUpConfluentSchema',
    tag: 'confluent',
    about: 'The version of a subject that has a text.',
    path: subject,
    body: schemaBody,
    answers: { 200: answer('The newest that has it.', noun('ConfluentVersion')) },
    errors: ['SUBJECT_NOT_FOUND', 'SCHEMA_NOT_FOUND']
  },
  versions: {
    id: 'listConfluentVersions',
    tag: 'confluent',
    about: 'Numbers of the versions that a subject has.',
    path: subject,
    answers: { 200: answer('Ascending.', list(u32())) },
    errors: ['SUBJECT_NOT_FOUND', 'OVERLOADED']
  },
  register: {
    id: 'registerConfluentSchema',
    tag: 'confluent',
    about: 'Register a schema, unless the subject has it.',
    details: 'The same text has the same id, in whatever subject.',
    path: subject,
    body: schemaBody,
    answers: { 200: answer('It is there, on disk.', fields({ id: whole() })) },
    errors: ['NAME_INVALID', 'SCHEMAS_TOO_MANY', 'SCHEMA_INCOMPATIBLE', ...checkErrors, ...changeErrors]
  },
  version: {
    id: 'readConfluentVersion',
    tag: 'confluent',
    about: 'A version of a subject by its number, or the latest.',
    path: version,
    answers: { 200: answer('The version.', noun('ConfluentVersion')) },
    errors: versionErrors
  },
  versionText: {
    id: 'readConfluentVersionText',
    tag: 'confluent',
    about: 'The text of a version alone.',
    path: version,
    answers: { 200: answer('The text.', schemaText) },
    errors: versionErrors
  },
  types: {
    id: 'listConfluentTypes',
    tag: 'confluent',
    about: 'The types of schemas that there are.',
    answers: { 200: answer('All.', list(text())) }
  },
  schema: {
    id: 'readConfluentSchema',
    tag: 'confluent',
    about: 'The schema that has an id.',
    path: id,
    answers: {
      200: answer(
        'The schema.',
        fields({ schema: text() }, { schemaType: choice(Object.values(confluentTypes), 'Left out of Avro.') })
      )
    },
    errors: ['SCHEMA_NOT_FOUND', 'OVERLOADED']
  },
  schemaText: {
    id: 'readConfluentSchemaText',
    tag: 'confluent',
    about: 'The text of a schema alone.',
    path: id,
    answers: { 200: answer('The text.', schemaText) },
    errors: ['SCHEMA_NOT_FOUND', 'OVERLOADED']
  },
  places: {
    id: 'listVersionsOfConfluentSchema',
    tag: 'confluent',
    about: 'The subjects and versions that a schema is.',
    path: id,
    answers: {
      200: answer(
        'By subject, of those that the key can read.',
        list(fields({ subject: noun('TopicName'), version: u32() }))
      )
    },
    errors: ['SCHEMA_NOT_FOUND', 'OVERLOADED']
  },
  subjectsOfSchema: {
    id: 'listSubjectsOfConfluentSchema',
    tag: 'confluent',
    about: 'The subjects that have a schema.',
    path: id,
    answers: { 200: answer('Sorted, of those that the key can read.', list(noun('TopicName'))) },
    errors: ['SCHEMA_NOT_FOUND', 'OVERLOADED']
  },
  generalLevel: {
    id: 'readGeneralConfluentLevel',
    tag: 'confluent',
    about: 'The compatibility level of subjects that have none of their own.',
    answers: levelAnswer
  },
  chooseGeneralLevel: {
    id: 'chooseGeneralConfluentLevel',
    tag: 'confluent',
    about: 'Choose the compatibility level of subjects that have none of their own.',
    body: levelBody,
    answers: chosenAnswer,
    errors: changeErrors
  },
  removeGeneralLevel: {
    id: 'resetGeneralConfluentLevel',
    tag: 'confluent',
    about: 'Take the choice of the general level back.',
    answers: formerAnswer,
    errors: changeErrors
  },
  level: {
    id: 'readConfluentLevel',
    tag: 'confluent',
    about: 'The compatibility level of a subject.',
    path: subject,
    query: {
      defaultToGlobal: {
        about: 'The general level of a subject that has none of its own.',
        schema: choice(['true', 'false'], '', { default: 'false' })
      }
    },
    answers: levelAnswer,
    errors: ['SUBJECT_NOT_FOUND', 'LEVEL_NOT_FOUND']
  },
  chooseLevel: {
    id: 'chooseConfluentLevel',
    tag: 'confluent',
    about: 'Choose the compatibility level of a subject.',
    path: subject,
    body: levelBody,
    answers: chosenAnswer,
    errors: ['NAME_INVALID', 'SCHEMAS_TOO_MANY', ...changeErrors]
  },
  removeLevel: {
    id: 'resetConfluentLevel',
    tag: 'confluent',
    about: 'Have a subject follow the general level again.',
    path: subject,
    answers: formerAnswer,
    errors: ['NAME_INVALID', 'LEVEL_NOT_FOUND', ...changeErrors]
  },
  compareWithAll: {
    id: 'testConfluentSchema',
    tag: 'confluent',
    about: 'Whether a schema would do as the next version of a subject.',
    path: subject,
    query: verbose,
    body: schemaBody,
    answers: verdictAnswer,
    errors: ['SUBJECT_NOT_FOUND', ...checkErrors]
  },
  compareWithVersion: {
    id: 'testConfluentSchemaBesideVersion',
    tag: 'confluent',
    about: 'Whether a schema goes together with a version, by the level of the subject.',
    path: version,
    query: verbose,
    body: schemaBody,
    answers: verdictAnswer,
    errors: ['SUBJECT_NOT_FOUND', 'VERSION_NOT_FOUND', ...checkErrors]
  },
  mode: {
    id: 'readConfluentMode',
    tag: 'confluent',
    about: 'Whether schemas can be registered: always.',
    answers: { 200: answer('Always this.', fields({ mode: choice(['READWRITE']) })) }
  }
} as const satisfies Record<string, RouteDocs>
