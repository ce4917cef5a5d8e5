/**
 * Listening addresses: `host:port`, parsed, never compared as text. Pure functions of any thread.
 * Only an IP is loopback: `127.evil.example` is a name, and what a name means is known only when it is looked up.
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

/** An address as parseAddress reads it. */
export function showAddress({ host, port }: Address): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/** Whether only this machine can reach that IP: 127.0.0.0/8 or ::1, however written. Of a name: false. */
export function isLoopbackAddress(host: string): boolean {
  if (isIPv4(host)) return host.startsWith('127.')
  if (!isIPv6(host) || host.includes('%')) return false
  const canonical = new URL(`http://[${host}]/`).hostname
  return canonical === '[::1]' || /^\[::ffff:7f[0-9a-f]{2}:[0-9a-f]{1,4}\]$/.test(canonical)
}

/**
 * What is wrong with an origin of a web page, in words that follow the key; null: nothing. It must be written exactly as
 * browsers send it, for it is compared as text.
 */
export function originFault(text: string): string | null {
  if (text === '*') return 'has *: name each origin, or every page of the web could use what its visitor may'
  if (text === 'null') return 'has null, which every sandboxed page sends: name an origin'
  const sent = /^https?:/i.test(text) && URL.canParse(text) ? new URL(text).origin : text
  if (sent !== text) return `has '${text}', which no browser sends: write ${sent}`
  return /^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@]+$/.test(text)
    ? null
    : `has '${text}', which is not an origin: write scheme://host, or scheme://host:port`
}
