/** The routes of consumer groups. Main thread. */
import { BrokerError } from '../../model/errors.ts'
import type { GroupDescription } from '../../model/groups.ts'
import {
  writeAssignment,
  writeGroup,
  writeHeartbeat,
  writeJoined,
  writeOffsets,
  writeOffsetsReset
} from '../../wire/json/groups-json.ts'
import { enterRead, readGroupRead } from './reads/consume-exchange.ts'
import type { BodySink } from './engines/engine.ts'
import type { Exchange } from './exchange.ts'
import { readCommit, readHeartbeat, readJoin, readLeave, readReset, readResetTopic } from './group-form.ts'
import { withJsonBody } from './json-body.ts'
import { parseQuery } from './query.ts'

/** Descriptions of a list that become text before others get their turn: a piece of some 100 KB. */
const WRITTEN_AT_ONCE = 500

/** `POST /groups/:group/commit`: 204 without a body. */
export function commitOffset(exchange: Exchange): BodySink | null {
  const { groups } = exchange.services.broker
  return withJsonBody(exchange, value => {
    const { place, offset, member } = readCommit(value)
    exchange.answerEmpty(groups.commit(exchange.who, exchange.name, place, offset, member))
  })
}

/** `GET /groups/:group/offsets` */
export function groupOffsets(exchange: Exchange): null {
  const { who, name } = exchange
  const { groups } = exchange.services.broker
  exchange.sendJson(200, writeOffsets(groups.offsets(who, name), groups.metadata(who, name)))
  return null
}

/** `GET /groups/:group/consume`: from the committed offset on. Commits nothing. */
export function groupConsume(exchange: Exchange): null {
  const form = readGroupRead(exchange)
  const position = exchange.services.broker.groups.positionOf(exchange.who, exchange.name, form)
  enterRead(exchange, form, position === null ? null : BigInt(position))
  return null
}

/** `POST /groups/:group/join` */
export function joinGroup(exchange: Exchange): BodySink | null {
  const { groups } = exchange.services.broker
  return withJsonBody(exchange, value => {
    exchange.answerWith(200, groups.join(exchange.who, exchange.name, readJoin(value)).then(writeJoined))
  })
}

/** `POST /groups/:group/heartbeat` */
export function heartbeat(exchange: Exchange): BodySink | null {
  const { groups } = exchange.services.broker
  return withJsonBody(exchange, value => {
    const { memberId, generation } = readHeartbeat(value)
    exchange.sendJson(200, writeHeartbeat(groups.heartbeat(exchange.who, exchange.name, memberId, generation)))
  })
}

/** `POST /groups/:group/leave`: 204 without a body, also of one that is no member. */
export function leaveGroup(exchange: Exchange): BodySink | null {
  const { groups } = exchange.services.broker
  return withJsonBody(exchange, value => {
    groups.leave(exchange.who, exchange.name, readLeave(value))
    exchange.sendEmpty(204)
  })
}

/** `GET /groups/:group/assignment` */
export function groupAssignment(exchange: Exchange): null {
  const memberId = parseQuery(exchange.head.query, ['member_id']).get('member_id')
  if (memberId === undefined) throw new BrokerError('FIELD_INVALID', { field: 'member_id', problem: 'is missing' })
  const { groups } = exchange.services.broker
  exchange.sendJson(200, writeAssignment(groups.assignment(exchange.who, exchange.name, memberId)))
  return null
}

/** `GET /groups` */
export function listGroups(exchange: Exchange): null {
  exchange.answerWith(200, exchange.services.broker.groups.list(exchange.who).then(writeList))
  return null
}

/** `GET /groups/:group` */
export function describeGroup(exchange: Exchange): null {
  const description = exchange.services.broker.groups.describe(exchange.who, exchange.name)
  exchange.answerWith(200, description.then(writeGroup))
  return null
}

/** `DELETE /groups/:group`: 204 without a body. */
export function removeGroup(exchange: Exchange): null {
  exchange.answerEmpty(exchange.services.broker.groups.remove(exchange.who, exchange.name))
  return null
}

/** `POST /groups/:group/reset` */
export function resetGroup(exchange: Exchange): BodySink | null {
  const { groups } = exchange.services.broker
  return withJsonBody(exchange, value => {
    exchange.answerWith(
      200,
      groups.reset(exchange.who, exchange.name, readReset(value)).then(offsets => writeOffsets(offsets))
    )
  })
}

/** `POST /admin/reset-offsets` */
export function resetOffsets(exchange: Exchange): BodySink | null {
  const { groups } = exchange.services.broker
  return withJsonBody(exchange, value => {
    exchange.answerWith(200, groups.resetTopic(exchange.who, readResetTopic(value)).then(writeOffsetsReset))
  })
}

async function writeList(groups: readonly GroupDescription[]): Promise<string> {
  const pieces: string[] = []
  for (let from = 0; from < groups.length; from += WRITTEN_AT_ONCE) {
    if (from > 0) await new Promise(resolve => setImmediate(resolve))
    pieces.push(
      groups
        .slice(from, from + WRITTEN_AT_ONCE)
        .map(writeGroup)
        .join(',')
    )
  }
  return `{"groups":[${pieces.join(',')}]}`
}
