/** The job `checkKeys`. Background thread. It must never keep anything of a batch. */
import type { CheckKeysResult, CheckKeysValue } from '../../src/background/batch-keys.ts'
import { moved, type Moved } from '../../src/background/moved.ts'
import { keyVerdictOn } from '../../src/wire/batch/batch-keys.ts'

export function checkKeys({ batch }: CheckKeysValue): Moved<CheckKeysResult> {
  const verdict = keyVerdictOn(Buffer.from(batch), 0, batch.byteLength)
  return moved({ verdict, batch }, [batch])
}
