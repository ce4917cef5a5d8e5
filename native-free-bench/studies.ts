/**
 * What is measured apart from the cases: how long a start takes (`recovery`), what many partitions cost (`many`), what a
 * scrape of them costs (`scrape`), what committed offsets cost those who produce (`groups`), what idle streams cost and how
 * soon a record is with them (`streams`), what idle and stuck connections cost (`connections`), how it stands beside
 * Apache Kafka (`kafka`). Each gives a table. Which ones a run has is decided here; main thread.
 */
import { runConnections } from './connections.ts'
import { runGroups } from './groups.ts'
import { runKafka } from './kafka.ts'
import { runMany } from './many.ts'
import type { BenchOptions, Scenario } from './options.ts'
import { partitionCountsOf } from './plan.ts'
import { runRecovery } from './recovery.ts'
import type { StudyResult, StudyTable } from './results.ts'
import type { RunContext } from './run-case.ts'
import { runScrape } from './scrape.ts'
import { runStreams } from './streams.ts'

/** Something that is measured once. */
export interface Study {
  readonly id: string
  readonly title: string
  run(context: RunContext, progress: (line: string) => void): Promise<StudyTable>
}

/** The studies of a run, in their order. */
export function planStudies(options: BenchOptions): Study[] {
  const studies: Study[] = []
  const has = (name: Scenario): boolean => options.scenarios.includes(name)
  for (const partitions of has('recovery') ? partitionCountsOf('recovery', options) : []) {
    studies.push({
      id: `recovery-${partitions}`,
      title: `From the start of the process to ready: ${partitions} partitions`,
      run: (context, progress) => runRecovery(context, partitions, progress)
    })
  }
  for (const partitions of has('many') ? partitionCountsOf('many', options) : []) {
    studies.push({
      id: `many-${partitions}`,
      title: `A topic of ${partitions} partitions, one record to each over ES01 and over HTTP`,
      run: (context, progress) => runMany(context, partitions, progress)
    })
  }
  for (const partitions of has('scrape') ? partitionCountsOf('scrape', options) : []) {
    studies.push({
      id: `scrape-${partitions}`,
      title: `A scrape of /metrics with ${partitions} partitions, and what it does to others`,
      run: (context, progress) => runScrape(context, partitions, progress)
    })
  }
  if (has('groups')) {
    studies.push({
      id: 'groups',
      title: 'Produce while nothing is committed, and while 100,000 committed offsets change every second',
      run: runGroups
    })
  }
  if (has('streams')) {
    studies.push({
      id: 'streams',
      title: 'A thousand idle streams: their memory, and from the acknowledgement of a record to its receipt on all',
      run: runStreams
    })
  }
  if (has('connections')) {
    studies.push({
      id: 'connections',
      title: 'A thousand idle connections and a hundred stuck ones: their memory, and what they do to a load',
      run: runConnections
    })
  }
  if (has('kafka')) {
    studies.push({
      id: 'kafka',
      title: "Beside Apache Kafka, under Kafka's own load generators",
      run: runKafka
    })
  }
  return studies
}

/** Runs one; a failure is kept and the run goes on. */
export async function runStudy(
  study: Study,
  context: RunContext,
  progress: (line: string) => void
): Promise<StudyResult> {
  const { id, title } = study
  try {
    return { id, title, table: await study.run(context, progress), failure: null }
  } catch (error) {
    return { id, title, table: null, failure: error instanceof Error ? error.message : String(error) }
  }
}
