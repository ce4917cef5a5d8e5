/** Listening addresses as text. Pure; any thread. */

/** `host:port` or `[ipv6]:port` in parts, brackets removed. The configuration has checked the form before. */
export function splitAddress(address: string): { host: string; port: number } {
  const colon = address.lastIndexOf(':')
  const host = address.slice(0, colon)
  return { host: host.startsWith('[') ? host.slice(1, -1) : host, port: Number(address.slice(colon + 1)) }
}
