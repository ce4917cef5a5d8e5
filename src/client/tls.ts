/** How a client trusts the broker it connects to over TLS. Shape only; both client libraries take it. */

export interface ClientTls {
  /** PEM of who may have signed the broker's certificate, or that certificate itself. Default: the system's authorities. */
  readonly ca?: string
  /** Takes any certificate: whoever stands between may read and change everything. */
  readonly isInsecure?: boolean
}

/** The same in the words of node:tls. */
export function trustOf({ ca, isInsecure }: ClientTls): { ca?: string; rejectUnauthorized: boolean } {
  return { ...(ca === undefined ? {} : { ca }), rejectUnauthorized: isInsecure !== true }
}

/** Codes of node:tls for a certificate that is not trusted, or is another's. */
export function isUntrusted(code: string): boolean {
  return /CERT|SELF_SIGNED|UNABLE_TO_(VERIFY|GET_ISSUER)/.test(code)
}
