/**
 * What a running broker is doing, as one bounded object for the log (SIGUSR2). Main thread. It asks every thread for its
 * heap and waits for none longer than a moment: a dump is wanted most when something is stuck.
 */
import type { HeapInfo } from 'node:v8'
import type { BackgroundPool } from '../background/pool.ts'
import type { BackgroundJobs } from '../background/jobs.ts'
import type { ByteBudget } from '../base/byte-budget.ts'
import { limits } from '../model/limits.ts'
import type { Readiness } from '../model/requests.ts'
import type { ShardLink } from '../shards/shard-link.ts'
import type { ShardSet } from '../shards/shard-set.ts'
import type { Es01Gateway } from '../gateway/es01/gateway.ts'
import type { HttpGateway } from '../gateway/http/gateway.ts'

export interface DumpedParts {
  readonly shards: ShardSet
  readonly broker: { readiness(): Readiness; troubles(): string[]; topicCount(): number }
  readonly http: HttpGateway
  readonly es01: Es01Gateway | null
  readonly background: BackgroundPool<BackgroundJobs>
  readonly requestBudget: ByteBudget
  readonly replyBudget: ByteBudget
}

/** @returns fields for one log line. Never rejects for a thread that does not answer. */
export async function dumpState(parts: DumpedParts): Promise<Record<string, unknown>> {
  const { shards, broker, http, es01, background } = parts
  const { connections, connectionsRefused, bodiesLate } = http.probe
  const links = shards.links().slice(0, limits.dumpedShards)
  const heaps = await Promise.all(links.map(link => heapOf(link.heap())))
  const { rss, heapUsed, heapTotal, external, arrayBuffers } = process.memoryUsage()
  return {
    uptimeSeconds: Math.round(process.uptime()),
    readiness: broker.readiness(),
    troubles: broker.troubles(),
    topics: broker.topicCount(),
    memory: { rss, external, arrayBuffers },
    heap: { used: heapUsed, total: heapTotal },
    http: { engine: http.engine, connections, connectionsRefused, bodiesLate },
    es01:
      es01 === null
        ? null
        : { connections: es01.connectionCount, handshakes: es01.handshakeCount, pauses: es01.probe.pauses },
    budgets: { request: useOf(parts.requestBudget), reply: useOf(parts.replyBudget) },
    background: { threads: background.threadCount, jobs: background.jobCount },
    shardCount: shards.shardCount,
    shardProblems: shards.problems().slice(0, limits.dumpedShards),
    shards: links.map((link, i) => ({ shard: link.shard, ...describeShard(link), heap: heaps[i] ?? null }))
  }
}

/** Bytes that wait in its rings, requests that wait for it, and how far its journal is settled. */
function describeShard({ requests, reads, pending, counters }: ShardLink): Record<string, unknown> {
  const depthOf = (ring: ShardLink['requests']): number => ring.capacityBytes - ring.freeBytes()
  const { groups, syncs, unsettledBytes, budgetBytes, settleJobs, settleFailures, heldMs, coldWaits } = counters
  const { settlingFailing, retentionFailing, slotsRolled, diskFull, damagedRuns } = counters
  return {
    ringBytes: { requests: depthOf(requests), reads: depthOf(reads) },
    pending: pending.count,
    journal: { groups, syncs, unsettledBytes, budgetBytes, slotsRolled, heldMs, diskFull, damagedRuns },
    settling: { jobs: settleJobs, failures: settleFailures, failing: settlingFailing, retentionFailing, coldWaits }
  }
}

function useOf({ usedBytes, limitBytes }: ByteBudget): { used: number; limit: number } {
  return { used: usedBytes, limit: limitBytes }
}

/** null: the thread gave no answer in time; a shard that sleeps gives it when it next wakes. */
async function heapOf(asked: Promise<HeapInfo>): Promise<{ used: number; total: number } | null> {
  const { promise: late, resolve } = Promise.withResolvers<null>()
  const timer = setTimeout(() => resolve(null), limits.dumpWaitMs)
  // A thread that ends meanwhile has no heap to tell of.
  const heap = await Promise.race([asked.catch(() => null), late])
  clearTimeout(timer)
  return heap === null ? null : { used: heap.used_heap_size, total: heap.total_heap_size }
}
