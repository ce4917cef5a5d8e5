/**
 * Listening addresses: `host:port`, parsed, never compared as text. Pure functions of any thread.
 * A host is loopback only if it is a loopback IP or the name `localhost`: `127.evil.example` is neither.
 */
import { isIPv4, isIPv6 } from 'node:net'
import { bad, good, type Reading } from './parse.ts'

export interface Address {
  /** Without brackets. */
  readonly host: string
  /** 0: the system picks one. */
  readonly port: number
}

const hostName = /^(?=.{1,253}$)(?!.*\.\.)[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i

/** Splits `127.0.0.1:9000`, `localhost:0` or `[::1]:9000`. */
export function parseAddress(text: string): Reading<Address> {
  const match = /^(?:\[([^\]]*)\]|([^:[\]]*)):(\d{1,5})$/.exec(text.trim())
  if (match === null) return bad('is not an address: write host:port, as 127.0.0.1:9000 or [::1]:9000')
  const [, bracketed, plain = '', digits] = match
  const port = Number(digits)
  if (port > 65_535) return bad(`has port ${port}: allowed is 0 to 65535`)
  if (bracketed !== undefined) {
    return isIPv6(bracketed)
      ? good({ host: bracketed, port })
      : bad(`has '${bracketed}' in brackets, which is no IPv6 address`)
  }
  if (plain === '') return bad('names no host: write 127.0.0.1 for this machine only, 0.0.0.0 for all interfaces')
  // Digits and dots that are no IPv4 address would go to the resolver, which reads 127.1 its own way.
  if (!isIPv4(plain) && (/^[\d.]+$/.test(plain) || !hostName.test(plain))) {
    return bad(`has host '${plain}', which is neither an IP address nor a host name`)
  }
  return good({ host: plain, port })
}

/** Whether only this machine can reach that host: 127.0.0.0/8, ::1, either form of both, or `localhost`. */
export function isLoopbackHost(host: string): boolean {
  if (host.toLowerCase() === 'localhost') return true
  if (isIPv4(host)) return host.startsWith('127.')
  if (!isIPv6(host) || host.includes('%')) return false
  const canonical = new URL(`http://[${host}]/`).hostname
  return canonical === '[::1]' || /^\[::ffff:7f[0-9a-f]{2}:[0-9a-f]{1,4}\]$/.test(canonical)
}
