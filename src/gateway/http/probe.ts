/** What the HTTP gateway counted since it started: plain numbers, read at scrape time. Main thread only. */

export interface HttpProbe {
  /** Open now, those in their TLS handshake included. */
  connections: number
  /** Turned away because there were too many. */
  connectionsRefused: number
  /** Bodies that came too slowly. */
  bodiesLate: number
}

/** @returns a probe of zeros. */
export function createProbe(): HttpProbe {
  return { connections: 0, connectionsRefused: 0, bodiesLate: 0 }
}
