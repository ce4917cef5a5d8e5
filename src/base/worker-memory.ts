/**
 * Memory limits of worker threads. Each has a heap of its own, and the young part of a heap is kept at its greatest size
 * once it was needed: with the default of 48 MiB a thread that is idle most of its life costs more than all its data.
 */

/** For `resourceLimits` of a Worker, MiB: shards and helpers allocate little per record. */
export const workerMemory = { maxYoungGenerationSizeMb: 6 } as const
