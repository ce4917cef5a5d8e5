/**
 * How many partitions of each topic each member is to have: begins with what they had, ends even (assignment.ts says how
 * and why). Pure; main thread. Only counts: which partitions they are is decided later.
 */
import { assert } from '../../base/assert.ts'
import type { SharedTopic, TopicClass } from './topic-classes.ts'

/** How many partitions each member has, and the moves between them. */
export class Shares {
  /** By member. */
  readonly #loads: Int32Array
  readonly #classes: readonly TopicClass[]
  /** By member: the classes it is in, with its place among the subscribers. */
  readonly #memberships: { readonly topicClass: TopicClass; readonly place: number }[][]

  constructor(memberCount: number, classes: readonly TopicClass[]) {
    this.#loads = new Int32Array(memberCount)
    this.#memberships = Array.from({ length: memberCount }, () => [])
    this.#classes = classes
    for (const topicClass of classes) {
      topicClass.subscribers.forEach((member, place) => {
        this.#memberships[member]?.push({ topicClass, place })
        for (const { counts } of topicClass.topics) this.#add(member, counts[place] ?? 0)
      })
    }
  }

  /** Gives away what nobody has: each class to its subscribers with the least. */
  fill(): void {
    for (const { subscribers, topics } of this.#classes) {
      const unowned = topics.map(({ owners, kept }) => owners.length - kept.reduce((sum, count) => sum + count, 0))
      const total = unowned.reduce((sum, count) => sum + count, 0)
      if (total === 0) continue
      const gifts = this.#giftsOf(subscribers, total)
      let place = 0
      topics.forEach(({ counts }, index) => {
        for (let left = unowned[index] ?? 0; left > 0;) {
          while (gifts[place] === 0) place++
          const given = Math.min(left, gifts[place] ?? 0)
          counts[place] = (counts[place] ?? 0) + given
          gifts[place] = (gifts[place] ?? 0) - given
          this.#add(subscribers[place] ?? 0, given)
          left -= given
        }
      })
    }
  }

  /** By place: how many of `total` each gets, so that those with the least come up together. */
  #giftsOf(subscribers: readonly number[], total: number): Int32Array {
    const loads = subscribers.map(member => this.#loads[member] ?? 0)
    const sorted = loads.toSorted((a, b) => a - b)
    // Up to which load the first `raised` are raised together, with what is left over.
    let raised = 1
    let sum = sorted[0] ?? 0
    while (raised < sorted.length && (sorted[raised] ?? 0) * raised - sum < total) sum += sorted[raised++] ?? 0
    const level = Math.floor((sum + total) / raised)
    let extra = sum + total - level * raised
    return Int32Array.from(loads, load => {
      if (load > level) return 0
      const more = extra > 0 ? 1 : 0
      extra -= more
      return level - load + more
    })
  }

  /**
   * Has every member, the one with the most first, give while a subscriber of what it has is two or more below it.
   * @returns whether anything moved: then those that could not give before may now.
   */
  evenOut(): boolean {
    const isDone = new Uint8Array(this.#loads.length)
    let hasMoved = false
    for (;;) {
      const giver = this.#mostLoaded(isDone)
      if (giver < 0) return hasMoved
      const move = this.#bestMove(giver)
      if (move === null) isDone[giver] = 1
      else {
        hasMoved = true
        const { topic, from, to, taker } = move
        topic.counts[from] = (topic.counts[from] ?? 0) - 1
        topic.counts[to] = (topic.counts[to] ?? 0) + 1
        this.#add(giver, -1)
        this.#add(taker, 1)
      }
    }
  }

  /** Of those that are not done; −1: none is left that has two more than anybody. */
  #mostLoaded(isDone: Uint8Array): number {
    let most = -1
    let mostLoad = 0
    let leastLoad = Number.POSITIVE_INFINITY
    for (let member = 0; member < this.#loads.length; member++) {
      const load = this.#loads[member] ?? 0
      if (load < leastLoad) leastLoad = load
      if (isDone[member] === 1 || (most >= 0 && load <= mostLoad)) continue
      most = member
      mostLoad = load
    }
    return mostLoad - leastLoad > 1 ? most : -1
  }

  /** To the subscriber with the least of all who may take something that the giver has; null: none is two below it. */
  #bestMove(giver: number): { topic: SharedTopic; from: number; to: number; taker: number } | null {
    let best: { topicClass: TopicClass; from: number; to: number } | null = null
    let least = (this.#loads[giver] ?? 0) - 1
    for (const { topicClass, place } of this.#memberships[giver] ?? []) {
      if (!topicClass.topics.some(({ counts }) => (counts[place] ?? 0) > 0)) continue
      const { subscribers } = topicClass
      for (let to = 0; to < subscribers.length; to++) {
        const load = this.#loads[subscribers[to] ?? 0] ?? 0
        if (load >= least) continue
        least = load
        best = { topicClass, from: place, to }
      }
    }
    if (best === null) return null
    const { topicClass, from, to } = best
    return { topic: topicToMove(topicClass, from, to), from, to, taker: topicClass.subscribers[to] ?? 0 }
  }

  /** @returns whether anything came back to one that had it before. */
  takeBack(): boolean {
    let hasMoved = false
    for (const topicClass of this.#classes) {
      const { subscribers, topics } = topicClass
      for (const { kept, counts } of topics) {
        const { losers, takers } = changesOf(kept, counts)
        if (losers.length === 0) continue
        for (const loser of losers) {
          const taker = takers.find(place => {
            const isTaken = (counts[place] ?? 0) > (kept[place] ?? 0)
            return isTaken && this.#canGoBack(topicClass, subscribers[loser] ?? 0, subscribers[place] ?? 0)
          })
          if (taker === undefined) continue
          hasMoved = true
          counts[loser] = (counts[loser] ?? 0) + 1
          counts[taker] = (counts[taker] ?? 0) - 1
          this.#add(subscribers[loser] ?? 0, 1)
          this.#add(subscribers[taker] ?? 0, -1)
        }
      }
    }
    return hasMoved
  }

  /** Whether all is as even if the taker had one less and the loser one more, of a topic of that class. */
  #canGoBack(back: TopicClass, loser: number, taker: number): boolean {
    const load = this.#loads[loser] ?? 0
    const most = this.#loads[taker] ?? 0
    // Almost always: who gave has no fewer than who took.
    if (load >= most) return false
    const loadOf = (member: number): number => {
      return (this.#loads[member] ?? 0) + (member === loser ? 1 : member === taker ? -1 : 0)
    }
    const hasNobodyBelow = (this.#memberships[loser] ?? []).every(({ topicClass, place }) => {
      const hasSome = topicClass === back || topicClass.topics.some(({ counts }) => (counts[place] ?? 0) > 0)
      return !hasSome || topicClass.subscribers.every(member => loadOf(member) >= load)
    })
    if (!hasNobodyBelow) return false
    return (this.#memberships[taker] ?? []).every(({ topicClass: { subscribers, topics } }) =>
      subscribers.every((member, place) => loadOf(member) <= most || topics.every(({ counts }) => counts[place] === 0))
    )
  }

  #add(member: number, count: number): void {
    this.#loads[member] = (this.#loads[member] ?? 0) + count
  }
}

/** Places that have less than before, and those that have more. */
function changesOf(kept: Int32Array, counts: Int32Array): { losers: number[]; takers: number[] } {
  const losers: number[] = []
  const takers: number[] = []
  for (let place = 0; place < counts.length; place++) {
    const change = (counts[place] ?? 0) - (kept[place] ?? 0)
    if (change < 0) losers.push(place)
    else if (change > 0) takers.push(place)
  }
  return { losers, takers }
}

/** What moves for nothing goes first: the giver never had it, or the taker had it before. Else what the giver has most of. */
function topicToMove({ topics }: TopicClass, from: number, to: number): SharedTopic {
  let best: SharedTopic | null = null
  let bestRank = -1
  for (const topic of topics) {
    const { counts, kept } = topic
    const count = counts[from] ?? 0
    if (count === 0) continue
    const isFree = count > (kept[from] ?? 0)
    const isReturn = (counts[to] ?? 0) < (kept[to] ?? 0)
    const rank = count + (isFree ? FREE_RANK : 0) + (isReturn ? FREE_RANK : 0)
    if (rank > bestRank) {
      best = topic
      bestRank = rank
    }
  }
  assert(best !== null, 'a giver has what it gives')
  return best
}

/** Above any count of partitions. */
const FREE_RANK = 2 ** 32
