/** What is asked of a simulated life of a log, and what happened in it. */
import type { FaultPoint } from '../../src/disk/faults.ts'
import type { SettlerCounts } from './log-life-settler.ts'

/** Lies that the disk tells in a negative control. */
export interface LifeControls {
  readonly ignoreSync?: boolean
  readonly ignoreDirectorySync?: boolean
  /** Syncs at these points do nothing, and say they did. */
  readonly ignoredSyncs?: readonly FaultPoint[]
}

/** What happened, so that a test can see that its lives were eventful. */
export interface LifeCounts extends Partial<SettlerCounts> {
  ackedRecords: number
  ackedMoves: number
  powerCuts: number
  kills: number
  cutsInRecovery: number
  refusedGroups: number
  failedSyncs: number
  cutGroups: number
  copiedGroups: number
  duplicates: number
  batches: number
  endsInSettle: number
  droppedTopics: number
}

export function noCounts(): LifeCounts {
  return {
    ackedRecords: 0,
    ackedMoves: 0,
    powerCuts: 0,
    kills: 0,
    cutsInRecovery: 0,
    refusedGroups: 0,
    failedSyncs: 0,
    cutGroups: 0,
    copiedGroups: 0,
    duplicates: 0,
    batches: 0,
    endsInSettle: 0,
    droppedTopics: 0
  }
}
