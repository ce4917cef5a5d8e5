/** The job `checkRecordKeys`. Background thread. It must never keep anything of a batch. */
import type { CheckRecordKeysResult, CheckRecordKeysValue } from '../../src/background/record-key-check.ts'
import { moved, type Moved } from '../../src/background/moved.ts'
import { keyVerdictOn } from '../../src/wire/batch/batch-keys.ts'

export function checkRecordKeys({ batch }: CheckRecordKeysValue): Moved<CheckRecordKeysResult> {
  const verdict = keyVerdictOn(Buffer.from(batch), 0, batch.byteLength)
  return moved({ verdict, batch }, [batch])
}
