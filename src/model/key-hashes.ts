/** How keys become partitions, by the name that a topic's configuration has for it. Pure, any thread. */
import { fnv1a64Modulo, murmur2Modulo, type KeyHash } from '../base/hash.ts'
import type { Partitioner } from './topic.ts'

/** Chosen once a request: records of one request are hashed alike. */
export const keyHashes: Readonly<Record<Partitioner, KeyHash>> = { fnv1a: fnv1a64Modulo, murmur2: murmur2Modulo }
