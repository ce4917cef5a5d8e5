/**
 * Certificates for tests, made on the spot: self-signed or of a private authority, for 127.0.0.1, ::1 and localhost,
 * P-256 with SHA-256.
 * The bytes of an X.509 certificate are written here because node:crypto reads certificates and makes none.
 *
 *   certificate  SEQUENCE { tbs, algorithm, BIT STRING signature }
 *   tbs          SEQUENCE { [0] version, serial, algorithm, issuer, validity, subject, public key, [3] extensions }
 */
import { createPrivateKey, generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface TestCertificate {
  /** PEM. */
  readonly cert: string
  readonly key: string
}

const DAY_MS = 86_400_000
const ecdsaWithSha256 = '2a8648ce3d040302'
const commonName = '550403'
const subjectAltName = '551d11'
const basicConstraints = '551d13'

/** One DER element: tag, length, content. */
function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  const head = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([tag, ...head]), content])
}

const sequence = (...parts: readonly Buffer[]): Buffer => der(0x30, ...parts)
const oid = (hex: string): Buffer => der(0x06, Buffer.from(hex, 'hex'))
const algorithm = sequence(oid(ecdsaWithSha256))

function nameOf(text: string): Buffer {
  return sequence(der(0x31, sequence(oid(commonName), der(0x0c, Buffer.from(text)))))
}

/** GeneralizedTime of whole seconds. */
function timeOf(ms: number): Buffer {
  return der(0x18, Buffer.from(`${new Date(ms).toISOString().replace(/[-:T]/g, '').slice(0, 14)}Z`))
}

function extension(id: string, value: Buffer): Buffer {
  return sequence(oid(id), der(0x04, value))
}

/** Who vouches for a certificate. */
interface Issuer {
  readonly name: string
  readonly key: KeyObject
}

/** A certificate and its key. @param issuer null: it vouches for itself. */
function issue(name: string, endsMs: number, extensions: Buffer, issuer: Issuer | null): TestCertificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const tbs = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    algorithm,
    nameOf(issuer?.name ?? name),
    sequence(timeOf(endsMs - 365 * DAY_MS), timeOf(endsMs)),
    nameOf(name),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, extensions)
  )
  const signature = sign('sha256', tbs, issuer?.key ?? privateKey)
  const bytes = sequence(tbs, algorithm, der(0x03, Buffer.alloc(1), signature))
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? []
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  }
}

const isAuthority = extension(basicConstraints, sequence(der(0x01, Buffer.from([255]))))
const isNoAuthority = extension(basicConstraints, sequence())
const namesOfThisMachine = extension(
  subjectAltName,
  sequence(
    der(0x82, Buffer.from('localhost')),
    der(0x87, Buffer.from([127, 0, 0, 1])),
    der(0x87, Buffer.concat([Buffer.alloc(15), Buffer.from([1])]))
  )
)

/** @param name shows as the common name. @param endsMs Unix ms of its last moment; default: in a day. */
export function makeCertificate(name: string, endsMs = Date.now() + DAY_MS): TestCertificate {
  return issue(name, endsMs, sequence(isAuthority, namesOfThisMachine), null)
}

/** A private authority, and a certificate of this machine that it vouches for. @returns the authority's own as `ca`, PEM. */
export function makeVouchedCertificate(name: string): TestCertificate & { readonly ca: string } {
  const endsMs = Date.now() + DAY_MS
  const authorityName = `authority of ${name}`
  const authority = issue(authorityName, endsMs, sequence(isAuthority), null)
  const issuer = { name: authorityName, key: createPrivateKey(authority.key) }
  return { ...issue(name, endsMs, sequence(isNoAuthority, namesOfThisMachine), issuer), ca: authority.cert }
}

/** Writes both files. @returns their paths. */
export function writeCertificate(folder: string, made: TestCertificate): { cert: string; key: string } {
  const paths = { cert: join(folder, 'tls.crt'), key: join(folder, 'tls.key') }
  writeFileSync(paths.cert, made.cert)
  writeFileSync(paths.key, made.key, { mode: 0o600 })
  return paths
}
