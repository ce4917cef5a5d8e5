/**
 * Which Host headers are served while authentication is off: a web page must not reach the broker of its visitor by a
 * name that resolves to 127.0.0.1. Main thread; built once from the settings.
 * Addresses are parsed, never compared as text: `127.evil.example` is a name, not a loopback address.
 */
import { BlockList, isIPv4, isIPv6 } from 'node:net'

/** The host part of a Host header or `host:port`, in lower case, brackets of IPv6 removed. */
function hostOf(value: string): string {
  const text = value.trim().toLowerCase()
  if (text.startsWith('[')) {
    const close = text.indexOf(']')
    return close > 0 && /^(:\d*)?$/.test(text.slice(close + 1)) ? text.slice(1, close) : ''
  }
  if (isIPv6(text)) return text
  const colon = text.indexOf(':')
  return colon < 0 ? text : text.slice(0, colon)
}

const isWildcard = (host: string): boolean => host === '' || host === '0.0.0.0' || /^[0:]+$/.test(host)

export class HostGuard {
  readonly #addresses = new BlockList()
  readonly #names = new Set(['localhost'])

  /** @param bind `host:port` of the listener. @param allowedHosts names or addresses, ports ignored. */
  constructor(bind: string, allowedHosts: readonly string[]) {
    this.#addresses.addSubnet('127.0.0.0', 8, 'ipv4')
    this.#addresses.addAddress('::1', 'ipv6')
    const bindHost = hostOf(bind)
    if (!isWildcard(bindHost)) this.#allow(bindHost)
    for (const host of allowedHosts) this.#allow(hostOf(host))
  }

  #allow(host: string): void {
    if (isIPv4(host)) this.#addresses.addAddress(host, 'ipv4')
    else if (isIPv6(host)) this.#addresses.addAddress(host, 'ipv6')
    else if (host !== '') this.#names.add(host)
  }

  /** True if requests that name this host are served. No Host header (empty) is: browsers always send one. */
  allows(hostHeader: string): boolean {
    if (hostHeader === '') return true
    const host = hostOf(hostHeader)
    if (isIPv4(host)) return this.#addresses.check(host, 'ipv4')
    if (isIPv6(host)) return this.#addresses.check(host, 'ipv6')
    return this.#names.has(host)
  }
}
