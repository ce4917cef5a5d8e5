/** Listening addresses as text. Pure; any thread. */

/** `host:port` or `[ipv6]:port` in parts, brackets removed. The configuration has checked the form before. */
export function splitAddress(address: string): { host: string; port: number } {
  const colon = address.lastIndexOf(':')
  const host = address.slice(0, colon)
  return { host: host.startsWith('[') ? host.slice(1, -1) : host, port: Number(address.slice(colon + 1)) }
}

/** A client's address as the system says it, without the prefix that an IPv4 address has on a listener for both. */
export function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '')
}

const MAPPED_BYTES = 12

/** The first bytes of an IPv6 address that stands for one of IPv4. */
function isMapped(bytes: Uint8Array): boolean {
  return bytes.subarray(0, MAPPED_BYTES).every((byte, index) => byte === (index < 10 ? 0 : 0xff))
}

/**
 * @param bytes an address in network order: 4 bytes or 16.
 * @returns text, equal for equal addresses: dotted for IPv4, also within IPv6; else 32 hexadecimal digits.
 */
export function textOfAddress(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join('.')
  if (isMapped(bytes)) return bytes.subarray(MAPPED_BYTES).join('.')
  return Buffer.from(bytes).toString('hex')
}
