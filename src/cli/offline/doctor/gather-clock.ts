/** Whether the wall clock is kept right, as far as this system tells. Main thread. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { systemClock } from '../../../base/clock.ts'
import type { ClockFacts } from './facts.ts'

/** timedatectl asks a service, which may not run. */
const ASK_TIMEOUT_MS = 2_000
/** systemd-timesyncd makes it once it has set the clock. */
const TIMESYNC_MARK = '/run/systemd/timesync/synchronized'

/** Both clocks at one moment. */
export interface ClockReading {
  readonly wallMs: number
  readonly monotonicMs: number
}

export function readClocks(): ClockReading {
  return { wallMs: systemClock.nowMs(), monotonicMs: systemClock.monotonicMs() }
}

/** @param before read some time ago: the longer, the more a step of the clock shows. */
export async function gatherClock(before: ClockReading): Promise<ClockFacts> {
  const told = await askSystem()
  const now = readClocks()
  const watchedMs = now.monotonicMs - before.monotonicMs
  return { wallMs: now.wallMs, stepMs: now.wallMs - before.wallMs - watchedMs, watchedMs, ...told }
}

async function askSystem(): Promise<Pick<ClockFacts, 'isSynchronised' | 'source'>> {
  const answer = await askTimedatectl()
  if (answer === 'yes' || answer === 'no') return { isSynchronised: answer === 'yes', source: 'timedatectl' }
  if (existsSync(TIMESYNC_MARK)) return { isSynchronised: true, source: 'systemd-timesyncd' }
  return { isSynchronised: null, source: 'nothing here tells whether it is synchronised' }
}

/** null: it is not there, or nobody answers it. */
function askTimedatectl(): Promise<string | null> {
  return new Promise(resolve => {
    execFile(
      'timedatectl',
      ['show', '--property=NTPSynchronized', '--value'],
      { timeout: ASK_TIMEOUT_MS },
      (error, stdout) => resolve(error === null ? stdout.trim() : null)
    )
  })
}
