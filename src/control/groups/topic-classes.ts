/**
 * Who may read what, and who did: the topics of a group by who subscribes to them. Pure; main thread. Made for one
 * assignment (assignment.ts), whose counts change in it.
 */
import { assert } from '../../base/assert.ts'
import { placeIn } from '../../base/sorted.ts'
import type { Assignment } from '../../model/groups.ts'

export interface Subscriber {
  readonly id: string
  /** Sorted, each once. Members with like subscriptions should share one list: lists are told apart by identity first. */
  readonly topics: readonly string[]
  /** What it had before. */
  readonly owned: Assignment
}

/** One topic, and how many of its partitions each of its subscribers is to have. */
export interface SharedTopic {
  readonly name: string
  /** By partition: place of the subscriber that had it, −1: none that still subscribes. */
  readonly owners: Int32Array
  /** By place: how many it had. */
  readonly kept: Int32Array
  /** By place: how many it is to have. */
  readonly counts: Int32Array
}

/** Topics that have the same subscribers. */
export interface TopicClass {
  /** Indexes of members, ascending: a place is a place in here. */
  readonly subscribers: readonly number[]
  /** By name. */
  readonly topics: readonly SharedTopic[]
}

/** Sorted by the number of subscribers: what can go to the fewest comes first. */
export function classesOf(members: readonly Subscriber[], countOf: (topic: string) => number): TopicClass[] {
  const byList = new Map<readonly string[], number[]>()
  members.forEach(({ topics }, index) => {
    const known = byList.get(topics)
    if (known === undefined) byList.set(topics, [index])
    else known.push(index)
  })
  const listsOf = new Map<string, number[]>()
  const lists = [...byList]
  lists.forEach(([topics], list) => {
    for (const name of topics) {
      const known = listsOf.get(name)
      if (known === undefined) listsOf.set(name, [list])
      else known.push(list)
    }
  })
  const namesOf = new Map<string, { readonly lists: readonly number[]; readonly names: string[] }>()
  for (const name of [...listsOf.keys()].sort()) {
    const ofName = listsOf.get(name) ?? []
    const key = ofName.join()
    const known = namesOf.get(key)
    if (known === undefined) namesOf.set(key, { lists: ofName, names: [name] })
    else known.names.push(name)
  }
  const classes = Array.from(namesOf.values(), ({ lists: ofClass, names }) => {
    const subscribers = ofClass.flatMap(list => lists[list]?.[1] ?? []).sort((a, b) => a - b)
    return { subscribers, topics: names.map(name => newTopic(name, countOf(name), subscribers.length)) }
  })
  return classes.sort((a, b) => a.subscribers.length - b.subscribers.length)
}

function newTopic(name: string, partitionCount: number, subscriberCount: number): SharedTopic {
  const kept = new Int32Array(subscriberCount)
  return { name, owners: new Int32Array(partitionCount).fill(-1), kept, counts: new Int32Array(subscriberCount) }
}

/** Fills in who had what: members keep it until it is decided otherwise. */
export function noteOwners(members: readonly Subscriber[], classes: readonly TopicClass[]): void {
  const topics = new Map(
    classes.flatMap(({ subscribers, topics }) => topics.map(topic => [topic.name, { topic, subscribers }]))
  )
  members.forEach(({ owned }, member) => {
    for (const [name, partitions] of owned) {
      const known = topics.get(name)
      const place = known === undefined ? -1 : placeOf(known.subscribers, member)
      if (known === undefined || place < 0) continue
      const { owners, kept, counts } = known.topic
      for (const partition of partitions) {
        if (partition >= owners.length) continue
        assert(owners[partition] === -1, 'a partition has one owner')
        owners[partition] = place
        kept[place] = (kept[place] ?? 0) + 1
      }
      counts[place] = kept[place] ?? 0
    }
  })
}

/** −1: it does not subscribe. */
function placeOf(subscribers: readonly number[], member: number): number {
  const place = placeIn(subscribers, member, isLower)
  return subscribers[place] === member ? place : -1
}

function isLower(member: number, wanted: number): boolean {
  return member < wanted
}
