/**
 * The certificate and key of the TLS listeners: read from their files, checked, and read anew when the files change.
 * Main thread; it owns the files' last known state, and lends the certificate in effect to the listeners.
 *
 *   look ──▶ as before ──▶ nothing
 *     │ changed
 *     ▼
 *   as at the last look? ──no──▶ wait: whoever replaces two files does it one after the other
 *     │ yes
 *     ▼
 *   read · check · hand to every listener ──fails──▶ the old one stays, the problem is told once
 *
 * What is looked at is the status of the files behind all links, so that a rename, a link that is set anew (certbot) and
 * a directory that is swapped (Kubernetes) are all seen. The key must never reach a log, an error or a file.
 */
import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto'
import { readFileSync, realpathSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { createSecureContext, type SecureContext } from 'node:tls'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import { limits } from '../../model/limits.ts'

/** Paths as the settings name them. */
export interface TlsFiles {
  readonly cert: string
  readonly key: string
}

/** A certificate that was checked, with its key. */
export interface Certificate {
  /** PEM. */
  readonly cert: string
  readonly key: string
  /** Where they were read, behind all links. */
  readonly files: TlsFiles
  readonly context: SecureContext
  readonly subject: string
  /** Nobody else vouches for it: clients must be told to trust it. */
  readonly isSelfSigned: boolean
  /** Unix ms. */
  readonly notAfterMs: number
}

/** Uses the certificate for connections that come from now on. What it throws keeps the one before. */
export type CertificateUser = (certificate: Certificate) => void

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  EACCES: 'permission denied',
  EISDIR: 'it is a directory',
  ELOOP: 'its links lead nowhere'
}

function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return reasons[code] ?? (error instanceof Error ? error.message : String(error))
}

/** @throws Error that names the path. */
function reading<Result>(what: string, path: string, read: () => Result): Result {
  try {
    return read()
  } catch (error) {
    throw new Error(`cannot use the ${what} ${path}: ${reasonOf(error)}`, { cause: error })
  }
}

function readKey(path: string, pem: string): KeyObject {
  if (/ENCRYPTED/.test(pem))
    throw new Error(`cannot use the key ${path}: it is encrypted; write it without a passphrase`)
  try {
    return createPrivateKey(pem)
  } catch {
    // The library's words may quote what it read, and that is a key.
    throw new Error(`cannot use the key ${path}: it is not a private key in PEM form`)
  }
}

/** Reads and checks both files. @throws Error of one line. */
export function readCertificate(paths: TlsFiles): Certificate {
  const files = {
    cert: reading('certificate', paths.cert, () => realpathSync(paths.cert)),
    key: reading('key', paths.key, () => realpathSync(paths.key))
  }
  const cert = reading('certificate', paths.cert, () => readFileSync(files.cert, 'utf8'))
  const key = reading('key', paths.key, () => readFileSync(files.key, 'utf8'))
  const keyObject = readKey(paths.key, key)
  let leaf: X509Certificate
  try {
    leaf = new X509Certificate(cert)
  } catch (error) {
    throw new Error(`cannot use the certificate ${paths.cert}: it is not a certificate in PEM form`, { cause: error })
  }
  if (!leaf.checkPrivateKey(keyObject)) {
    throw new Error(`the key ${paths.key} does not belong to the first certificate in ${paths.cert}`)
  }
  const context = reading('certificate', paths.cert, () => createSecureContext({ cert, key }))
  const subject = leaf.subject.replaceAll('\n', ', ')
  const isSelfSigned = leaf.issuer === leaf.subject
  return { cert, key, files, context, subject, isSelfSigned, notAfterMs: Date.parse(leaf.validTo) }
}

/** True if the files still hold what was read from them. */
export function isUnchanged({ cert, key, files }: Certificate): boolean {
  try {
    return readFileSync(files.cert, 'utf8') === cert && readFileSync(files.key, 'utf8') === key
  } catch (error) {
    // Gone since: changed as much as a file can be.
    if (error instanceof Error) return false
    throw error
  }
}

/** What of a file changes whenever its content, or what its path leads to, does. Never rejects. */
async function stateOf(path: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true })
    return [dev, ino, size, mtimeNs, ctimeNs].join()
  } catch (error) {
    return reasonOf(error)
  }
}

export interface CertificatesOptions {
  readonly files: TlsFiles
  readonly logger: Logger
  readonly clock: Clock
  /** Between two looks at the files. Default: limits.certificateLookMs. */
  readonly lookMs?: number
}

export class Certificates {
  /** Times that a new certificate was not taken. */
  reloadFailures = 0
  reloads = 0
  readonly #options: CertificatesOptions
  readonly #users: CertificateUser[] = []
  #files: TlsFiles
  #current: Certificate
  /** States of the files: as they were read last, and as they were seen last. Empty: not known yet. */
  #knownState = ''
  #seenState = ''
  #problem: string | null = null
  #timer: NodeJS.Timeout | null = null

  /** @throws Error of one line, fit for the person who starts the broker. */
  constructor(options: CertificatesOptions) {
    this.#options = options
    this.#files = options.files
    this.#current = readCertificate(options.files)
    if (this.#isExpired(this.#current)) {
      const { subject, notAfterMs } = this.#current
      options.logger.warn({ subject, notAfter: new Date(notAfterMs) }, 'the TLS certificate has expired')
    }
  }

  get current(): Certificate {
    return this.#current
  }

  get isSelfSigned(): boolean {
    return this.#current.isSelfSigned
  }

  /** When the certificate in effect ends, Unix ms. */
  get notAfterMs(): number {
    return this.#current.notAfterMs
  }

  /** What is wrong for the moment, one sentence; null: nothing. It names no path: callers may read it. */
  get problem(): string | null {
    const ended = this.#isExpired(this.#current)
      ? `the TLS certificate ended at ${new Date(this.#current.notAfterMs).toISOString()}`
      : null
    if (this.#problem === null) return ended
    return `the TLS certificate could not be replaced, the old one is in use: see the log${ended === null ? '' : `; ${ended}`}`
  }

  /** Has the user told of every certificate from now on; it has the current one already. */
  onChange(user: CertificateUser): void {
    this.#users.push(user)
  }

  /** Begins to look at the files. */
  watch(): void {
    const lookMs = this.#options.lookMs ?? limits.certificateLookMs
    this.#timer ??= setTimeout(() => void this.#look().finally(() => this.#lookAgain()), lookMs)
    this.#timer.unref()
  }

  #lookAgain(): void {
    if (this.#timer === null) return
    this.#timer = null
    this.watch()
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
  }

  /**
   * Reads the files now, whether they have changed or not.
   * @param files from now on; left out: where they were.
   * @returns what hindered it; null: the certificate of the files is in effect.
   */
  reload(files: TlsFiles = this.#files): string | null {
    this.#files = files
    return this.#load()
  }

  async #look(): Promise<void> {
    const { cert, key } = this.#files
    const state = (await Promise.all([stateOf(cert), stateOf(key)])).join(' ')
    if (this.#timer === null) return
    const isSettled = state === this.#seenState
    this.#seenState = state
    // A failed one is tried at each look: what was wrong may lie outside of the two files.
    if (!isSettled || (state === this.#knownState && this.#problem === null)) return
    this.#knownState = state
    this.#load()
  }

  /** @returns what hindered it. */
  #load(): string | null {
    const { logger } = this.#options
    try {
      const next = readCertificate(this.#files)
      if (this.#isExpired(next))
        throw new Error(`the new certificate has expired: ${new Date(next.notAfterMs).toISOString()}`)
      const isNew = next.cert !== this.#current.cert || next.key !== this.#current.key
      if (isNew) for (const use of this.#users) use(next)
      this.#current = next
      this.#problem = null
      if (isNew) {
        this.reloads++
        const { subject, notAfterMs } = next
        logger.info({ subject, notAfter: new Date(notAfterMs) }, 'new connections get the new TLS certificate')
      }
      return null
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error)
      if (problem !== this.#problem) {
        this.reloadFailures++
        logger.error({ problem }, 'the new TLS certificate is not used, the old one stays')
      }
      this.#problem = problem
      return problem
    }
  }

  #isExpired({ notAfterMs }: Certificate): boolean {
    return notAfterMs <= this.#options.clock.nowMs()
  }
}
