/** All rows on the binary protocol, by section. */
import { frameRows } from './es01-frames-rows.ts'
import { limitRows } from './es01-limits-rows.ts'
import { orderRows } from './es01-order-rows.ts'
import { refusalRows } from './es01-refusals-rows.ts'
import type { Es01Stage } from './es01-stage.ts'
import type { Row } from './row.ts'

export { bytesRows } from './es01-bytes-rows.ts'

/** Section 12. */
export const behaviourRows: readonly Row<Es01Stage>[] = [...limitRows, ...frameRows, ...refusalRows, ...orderRows]
