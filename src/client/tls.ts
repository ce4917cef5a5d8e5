/** How a client trusts the broker it connects to over TLS. Shape only; both client libraries take it. */

export interface ClientTls {
  /** PEM of who may have signed the broker's certificate, or that certificate itself. Default: the authorities that Node.js knows. */
  readonly ca?: string
  /** Takes any certificate: whoever stands between may read and change everything. */
  readonly insecure?: boolean
}

/** The same in the words of node:tls. */
export function trustOf({ ca, insecure }: ClientTls): { ca?: string; rejectUnauthorized: boolean } {
  return { ...(ca === undefined ? {} : { ca }), rejectUnauthorized: insecure !== true }
}

/** Codes of node:tls for a certificate that is not trusted, or is another's. */
export function isUntrusted(code: string): boolean {
  return /CERT|SELF_SIGNED|UNABLE_TO_(VERIFY|GET_ISSUER)/.test(code)
}

/** The reason alone, without the option of node that node:tls goes on with. */
export function untrustedReason(message: string): string {
  return message.split(';', 1)[0] ?? message
}

/** Whether a handshake failed because the other side does not speak TLS: nothing of a request was sent. */
export function isPlainPeer(message: string): boolean {
  return /wrong version number/i.test(message)
}
