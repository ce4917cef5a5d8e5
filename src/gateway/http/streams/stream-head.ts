/** The head of every answer that is a stream. Pure; main thread. It imports nothing that knows a request. */
import type { ReplyHead } from '../engines/engine.ts'

/** Of the answer. */
export const EVENT_STREAM_TYPE = 'text/event-stream; charset=utf-8'

/** What keeps proxies and caches from holding events back. */
export const STREAM_HEAD: ReplyHead = {
  status: 200,
  contentType: EVENT_STREAM_TYPE,
  headers: [
    ['cache-control', 'no-store'],
    ['x-accel-buffering', 'no']
  ]
}
