/**
 * What clients do in consumer groups. The play is the same for all of them, and so is what has to come of it; a client only
 * says what a member of its kind is.
 */
import assert from 'node:assert/strict'
import { waitFor, type TestBroker } from '../support/broker.ts'
import { HttpApi, parse } from '../support/http-api.ts'
import { newTopic, topicOf, type Check, type CheckName, type ClientStage } from './client.ts'

/** A program may have to start, and a rebalance ends with the slowest heartbeat. */
const WAIT_MS = 30_000
const PARTITIONS = 4

/** One consumer that reads from the beginning of what was never committed. */
export interface Member {
  /** Partitions that it has; null: none yet, or a rebalance is going on. */
  partitions(): readonly number[] | null
  /** `partition:offset:value` of what it read, in the order in which it came. */
  readonly messages: readonly string[]
  /** Commits what it read, where it does not do so by itself before it has stopped. */
  commit?(): Promise<void>
  /** Leaves the group. Doing it again does nothing. */
  stop(): Promise<void>
}

/** What a member is given to begin with. */
export interface Joining {
  /** host:port */
  readonly address: string
  readonly group: string
  readonly topic: string
}

/** One whose place is kept for it while it is away. */
export interface StaticMember extends Member {
  /** Ends without a word to the group, or stays until another has taken its place. */
  vanish(): Promise<void>
}

type Join<M extends Member> = (joining: Joining, instanceId: string) => Promise<M>

/** Members of one play, stopped at its end however it went. */
async function withGroup<M extends Member>(
  stage: ClientStage,
  join: Join<M>,
  play: (play: Play<M>) => Promise<void>
): Promise<void> {
  const members: M[] = []
  const joining = { address: stage.open.kafka, group: newTopic(), topic: await topicOf(stage, PARTITIONS) }
  try {
    await play({
      ...joining,
      broker: stage.open,
      start: async instanceId => {
        const member = await join(joining, instanceId)
        members.push(member)
        return member
      }
    })
  } finally {
    await Promise.all(members.map(member => member.stop()))
  }
}

interface Play<M extends Member> extends Joining {
  readonly broker: TestBroker
  start(instanceId: string): Promise<M>
}

/** Waits until the members have all partitions between them, each as many as the others. */
async function sharedBy(...members: readonly Member[]): Promise<void> {
  const each = PARTITIONS / members.length
  const what = `${each} partitions for each of ${members.length} members`
  await waitFor(
    what,
    () => {
      const shares = members.map(member => member.partitions() ?? [])
      return shares.every(({ length }) => length === each) && new Set(shares.flat()).size === PARTITIONS
    },
    WAIT_MS
  )
}

/** A record in each partition. @returns them, as members tell of them. */
async function writeToEach({ broker, topic }: Pick<Play<Member>, 'broker' | 'topic'>, value: string) {
  const records = Array.from({ length: PARTITIONS }, (_, partition) => ({ value, partition }))
  const results = await new HttpApi(broker.url).produce(topic, records)
  return results.map(({ partition, offset }) => `${partition}:${offset}:${value}`)
}

async function readBy(member: Member, wanted: readonly string[]): Promise<void> {
  await waitFor(wanted.join(), () => wanted.every(message => member.messages.includes(message)), WAIT_MS)
}

const ofPartitionsOf = (member: Member, messages: readonly string[]): string[] =>
  messages.filter(message => member.partitions()?.includes(Number(message.split(':')[0])))

async function committed({ broker, group }: Pick<Play<Member>, 'broker' | 'group'>): Promise<object> {
  return parse<{ offsets: object }>(await new HttpApi(broker.url).get(`/groups/${group}/offsets`)).offsets
}

async function generationOf({ broker, group }: Pick<Play<Member>, 'broker' | 'group'>): Promise<number> {
  return parse<{ generation: number }>(await new HttpApi(broker.url).get(`/groups/${group}`)).generation
}

/** Two that start together share the partitions, and each reads what is written to its own, once. */
const share: (play: Play<Member>) => Promise<void> = async play => {
  const [first, second] = await Promise.all([play.start('first'), play.start('second')])
  await sharedBy(first, second)
  const written = await writeToEach(play, 'one')
  for (const member of [first, second]) {
    const own = ofPartitionsOf(member, written)
    await readBy(member, own)
    assert.deepEqual(member.messages.toSorted(), own)
  }
}

/** A second one takes half of the partitions of the first, and gives them back. */
const rebalance: (play: Play<Member>) => Promise<void> = async play => {
  const first = await play.start('first')
  await sharedBy(first)
  await readBy(first, await writeToEach(play, 'one'))
  const second = await play.start('second')
  await sharedBy(first, second)
  const written = await writeToEach(play, 'two')
  for (const member of [first, second]) await readBy(member, ofPartitionsOf(member, written))
  await second.stop()
  await sharedBy(first)
  await readBy(first, await writeToEach(play, 'three'))
}

/** What one has committed, and the broker tells of over HTTP, another does not read again. */
const resume: (play: Play<Member>) => Promise<void> = async play => {
  const first = await play.start('first')
  await readBy(first, [...(await writeToEach(play, 'one')), ...(await writeToEach(play, 'two'))])
  await first.commit?.()
  await first.stop()
  assert.deepEqual(await committed(play), { [play.topic]: { 0: 2, 1: 2, 2: 2, 3: 2 } })
  const written = await writeToEach(play, 'three')
  const second = await play.start('second')
  await readBy(second, written)
  assert.deepEqual(second.messages.toSorted(), written)
}

/** One that was away is given what it had, and the others hear nothing of it. */
const keepPlace: (play: Play<StaticMember>) => Promise<void> = async play => {
  const [first, second] = await Promise.all([play.start('first'), play.start('second')])
  await sharedBy(first, second)
  const [had, generation] = [first.partitions(), await generationOf(play)]
  await first.vanish()
  const again = await play.start('first')
  await waitFor('its place', () => again.partitions() !== null, WAIT_MS)
  assert.deepEqual(again.partitions()?.toSorted(), had?.toSorted())
  const written = await writeToEach(play, 'one')
  for (const member of [again, second]) await readBy(member, ofPartitionsOf(member, written))
  assert.equal(await generationOf(play), generation)
}

/** The checks of groups, for members that nobody keeps a place for. */
export function groupChecks(join: (joining: Joining) => Promise<Member>): Partial<Record<CheckName, Check>> {
  const playing = (play: (play: Play<Member>) => Promise<void>): Check => {
    return stage => withGroup(stage, joining => join(joining), play)
  }
  return { 'group of two': playing(share), rebalance: playing(rebalance), 'commit and resume': playing(resume) }
}

/** The check of a member whose instance has a name. */
export function staticMemberCheck(join: Join<StaticMember>): Check {
  return stage => withGroup(stage, join, keepPlace)
}
