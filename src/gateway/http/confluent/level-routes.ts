/** Compatibility levels and comparisons as Confluent's schema registry has them. Main thread. */
import { authorise } from '../../../model/access.ts'
import { BrokerError } from '../../../model/errors.ts'
import type { CompatibilityMode, SchemaUseCases, VersionWanted } from '../../../model/schemas.ts'
import { writeChosenLevel, writeLevel, writeVerdict } from '../../../wire/json/confluent-json.ts'
import type { BodySink } from '../engines/engine.ts'
import type { Exchange } from '../exchange.ts'
import { withJsonBody, withSchemaBody } from '../json-body.ts'
import { readFlag, readLevel, readSchema, readVersion, schemaFields } from './form.ts'

const registryOf = (exchange: Exchange): SchemaUseCases => exchange.services.broker.schemas

/** The general one is always chosen. */
function generalMode(exchange: Exchange): CompatibilityMode {
  return registryOf(exchange).modeOf(exchange.who, null) ?? 'default'
}

/** @throws BrokerError LEVEL_NOT_FOUND, SUBJECT_NOT_FOUND */
function ownMode(exchange: Exchange): CompatibilityMode {
  const mode = registryOf(exchange).modeOf(exchange.who, exchange.name)
  if (mode === null) throw new BrokerError('LEVEL_NOT_FOUND', { subject: exchange.name })
  return mode
}

/** @param subject null: the general level. */
function choose(exchange: Exchange, subject: string | null): BodySink | null {
  return withJsonBody(exchange, value => {
    const mode = readLevel(value)
    const chosen = registryOf(exchange).setMode(exchange.who, subject, mode)
    exchange.answerWith(
      200,
      chosen.then(() => writeChosenLevel(mode))
    )
  })
}

/** @param subject null: the general level. @param mode what counted until now, which is told. */
function takeBack(exchange: Exchange, subject: string | null, mode: CompatibilityMode): null {
  const done = registryOf(exchange).setMode(exchange.who, subject, null)
  exchange.answerWith(
    200,
    done.then(() => writeLevel(mode))
  )
  return null
}

/** `GET /confluent/config` */
export function showGeneralLevel(exchange: Exchange): null {
  exchange.sendJson(200, writeLevel(generalMode(exchange)))
  return null
}

/** `PUT /confluent/config` */
export function chooseGeneralLevel(exchange: Exchange): BodySink | null {
  return choose(exchange, null)
}

/** `DELETE /confluent/config`: as if none was ever chosen. */
export function removeGeneralLevel(exchange: Exchange): null {
  authorise(exchange.who, 'manage compatibility')
  return takeBack(exchange, null, generalMode(exchange))
}

/** `GET /confluent/config/:subject` */
export function showLevel(exchange: Exchange): null {
  const fallsBack = readFlag(exchange.head.query, 'defaultToGlobal')
  const mode = fallsBack
    ? (registryOf(exchange).modeOf(exchange.who, exchange.name) ?? generalMode(exchange))
    : ownMode(exchange)
  exchange.sendJson(200, writeLevel(mode))
  return null
}

/** `PUT /confluent/config/:subject` */
export function chooseLevel(exchange: Exchange): BodySink | null {
  return choose(exchange, exchange.name)
}

/** `DELETE /confluent/config/:subject`: the subject follows the general level again. */
export function removeLevel(exchange: Exchange): null {
  authorise(exchange.who, 'manage compatibility')
  return takeBack(exchange, exchange.name, ownMode(exchange))
}

/** `POST /confluent/compatibility/subjects/:subject/versions`: with those that the level of the subject asks for. */
export function compareWithAll(exchange: Exchange): BodySink | null {
  return compare(exchange, () => 'all')
}

/** `POST /confluent/compatibility/subjects/:subject/versions/:version` */
export function compareWithVersion(exchange: Exchange): BodySink | null {
  const [subject = '', text = ''] = exchange.names
  const version = readVersion(text)
  return compare(exchange, () => (version === null && !hasVersions(exchange, subject) ? 'all' : version))
}

/** The first version of a subject goes together with the latest, which is none. */
function hasVersions(exchange: Exchange, subject: string): boolean {
  try {
    return registryOf(exchange).versionsOf(exchange.who, subject).length > 0
  } catch (error) {
    if (error instanceof BrokerError && error.code === 'SUBJECT_NOT_FOUND') return false
    throw error
  }
}

function compare(exchange: Exchange, against: () => VersionWanted | 'all'): BodySink | null {
  const { name: subject, head, who } = exchange
  const isVerbose = readFlag(head.query, 'verbose')
  return withSchemaBody(exchange, schemaFields, value => {
    const compared = registryOf(exchange).incompatibilities(who, readSchema(subject, value), against())
    exchange.answerWith(
      200,
      compared.then(problems => {
        // It was only looked up: not told to a key that was revoked meanwhile.
        authorise(who, 'list schemas')
        return writeVerdict(problems, isVerbose)
      })
    )
  })
}

/** `GET /confluent/mode`: there is no other, and none can be chosen. */
export function showMode(exchange: Exchange): null {
  exchange.sendJson(200, '{"mode":"READWRITE"}')
  return null
}
