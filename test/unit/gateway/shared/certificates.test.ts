/** The certificate of the TLS listeners: what is refused, when it is read anew, and what a bad new one changes: nothing. */
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { Logger } from '../../../../src/base/logger.ts'
import { Certificates, readCertificate, type Certificate } from '../../../../src/gateway/shared/certificates.ts'
import { waitFor } from '../../../support/broker.ts'
import { makeCertificate, writeCertificate } from '../../../support/certificate.ts'
import { temporaryDirectory } from '../../../support/temporary-directory.ts'

interface Watched {
  readonly certificates: Certificates
  readonly taken: Certificate[]
  readonly lines: { readonly level: string; readonly fields: object; readonly message: string }[]
}

/** Looks at the files every few milliseconds. */
function watch(t: TestContext, files: { cert: string; key: string }, nowMs = () => Date.now()): Watched {
  const lines: Watched['lines'] = []
  const keep = (level: string) => (fields: object, message: string) => void lines.push({ level, fields, message })
  const logger: Logger = { debug: keep('debug'), info: keep('info'), warn: keep('warn'), error: keep('error') }
  const certificates = new Certificates({ files, logger, clock: { nowMs, monotonicMs: nowMs }, lookMs: 5 })
  const taken: Certificate[] = []
  certificates.onChange(certificate => taken.push(certificate))
  certificates.watch()
  t.after(() => certificates.stop())
  return { certificates, taken, lines }
}

test('files that cannot be used are refused in one line that names the file and the reason, and never the key', t => {
  const folder = temporaryDirectory(t)
  const good = writeCertificate(folder, makeCertificate('good'))
  const other = makeCertificate('other')
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text)
    return join(folder, name)
  }
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const sealed = privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-128-cbc', passphrase: 'p' }).toString()
  const cases: readonly (readonly [{ cert: string; key: string }, RegExp])[] = [
    [{ ...good, cert: join(folder, 'none.crt') }, /certificate .*none\.crt: no such file$/],
    [{ ...good, key: join(folder, 'none.key') }, /key .*none\.key: no such file$/],
    [{ ...good, cert: folder }, /it is a directory$/],
    [{ ...good, cert: file('empty.crt', '') }, /empty\.crt: it is not a certificate in PEM form$/],
    [{ ...good, key: file('bad.key', 'SECRETWORDS') }, /bad\.key: it is not a private key in PEM form$/],
    [{ ...good, key: file('sealed.key', sealed) }, /sealed\.key: it is encrypted; write it without a passphrase$/],
    [
      { ...good, key: file('other.key', other.key) },
      /other\.key does not belong to the first certificate in .*tls\.crt$/
    ]
  ]
  for (const [files, words] of cases) {
    assert.throws(
      () => readCertificate(files),
      (error: unknown) => {
        assert.ok(error instanceof Error)
        assert.match(error.message, words)
        assert.ok(!/\n|SECRETWORDS|PRIVATE KEY/.test(error.message), error.message)
        return true
      }
    )
  }
  assert.equal(readCertificate(good).subject, 'CN=good')
})

test('a certificate that was replaced in place, by rename, by link and by a swapped directory is taken', async t => {
  const folder = temporaryDirectory(t)
  // As Kubernetes mounts a secret: names → ..data → a directory of one version.
  const version = (name: string): void => {
    mkdirSync(join(folder, name))
    writeCertificate(join(folder, name), makeCertificate(name))
  }
  version('v1')
  symlinkSync('v1', join(folder, '..data'))
  const files = { cert: join(folder, 'tls.crt'), key: join(folder, 'tls.key') }
  symlinkSync(join('..data', 'tls.crt'), files.cert)
  symlinkSync(join('..data', 'tls.key'), files.key)
  const { certificates, taken } = watch(t, files)
  const takes = async (subject: string): Promise<void> => {
    await waitFor(`${subject} to be taken`, () => taken.at(-1)?.subject === `CN=${subject}`)
    assert.equal(certificates.current.subject, `CN=${subject}`)
  }

  version('v2')
  symlinkSync('v2', join(folder, '..new'))
  renameSync(join(folder, '..new'), join(folder, '..data'))
  rmSync(join(folder, 'v1'), { recursive: true })
  await takes('v2')
  // In place: the files behind the links are written over.
  writeCertificate(join(folder, 'v2'), makeCertificate('v3'))
  await takes('v3')
  // As certbot does it: the links themselves are set anew, one after the other.
  version('v4')
  for (const [path, name] of [
    [files.key, 'tls.key'],
    [files.cert, 'tls.crt']
  ] as const) {
    symlinkSync(join('v4', name), `${path}.new`)
    renameSync(`${path}.new`, path)
  }
  await takes('v4')
  // Plain files moved over the links.
  const next = makeCertificate('v5')
  writeFileSync(join(folder, 'a'), next.cert)
  writeFileSync(join(folder, 'b'), next.key)
  renameSync(join(folder, 'a'), files.cert)
  renameSync(join(folder, 'b'), files.key)
  await takes('v5')
  assert.equal(certificates.problem, null)
})

test('a bad new certificate keeps the old one, is told once, and counts; a good one ends the trouble', async t => {
  const folder = temporaryDirectory(t)
  const files = writeCertificate(folder, makeCertificate('first'))
  const { certificates, taken, lines } = watch(t, files)
  assert.equal(certificates.problem, null)
  writeFileSync(files.key, makeCertificate('stranger').key)
  await waitFor('the trouble to be told', () => certificates.problem !== null)
  assert.equal(certificates.current.subject, 'CN=first')
  assert.deepEqual([certificates.reloadFailures, taken.length], [1, 0])
  const error = lines.find(line => line.level === 'error')
  assert.match(JSON.stringify(error), /tls\.key does not belong to .*the old one stays/)
  assert.ok(!String(certificates.problem).includes(folder), 'callers learn no path')
  // It is tried again at each look, and not told again.
  assert.notEqual(certificates.reload(), null)
  assert.equal(certificates.reloadFailures, 1)
  assert.equal(lines.filter(line => line.level === 'error').length, 1)

  writeCertificate(folder, makeCertificate('second'))
  await waitFor('the new one', () => certificates.current.subject === 'CN=second')
  assert.deepEqual([certificates.problem, certificates.reloads, taken.length], [null, 1, 1])
})

test('a listener that cannot use the new certificate keeps the old one for all', t => {
  const folder = temporaryDirectory(t)
  const files = writeCertificate(folder, makeCertificate('first'))
  const { certificates, taken } = watch(t, files)
  certificates.stop()
  const refusing = new Certificates({
    files,
    logger: { debug() {}, info() {}, warn() {}, error() {} },
    clock: { nowMs: () => Date.now(), monotonicMs: () => performance.now() }
  })
  refusing.onChange(() => {
    throw new Error('no')
  })
  refusing.onChange(certificate => taken.push(certificate))
  writeCertificate(folder, makeCertificate('second'))
  assert.equal(refusing.reload(), 'no')
  assert.deepEqual([refusing.current.subject, taken.length], ['CN=first', 0])
})

test('the end of a certificate is known, an expired new one is not taken, and an expired one in use is a trouble', t => {
  const folder = temporaryDirectory(t)
  const endsMs = Math.ceil(Date.now() / 1000) * 1000 + 60_000
  const files = writeCertificate(folder, makeCertificate('first', endsMs))
  let nowMs = Date.now()
  const { certificates } = watch(t, files, () => nowMs)
  assert.equal(certificates.notAfterMs, endsMs)
  writeCertificate(folder, makeCertificate('stale', Date.now() - 5_000))
  assert.match(certificates.reload() ?? '', /the new certificate has expired/)
  assert.equal(certificates.current.subject, 'CN=first')
  writeCertificate(folder, makeCertificate('first', endsMs))
  assert.equal(certificates.reload(), null)
  assert.equal(certificates.problem, null)
  nowMs = endsMs
  assert.match(certificates.problem ?? '', /^the TLS certificate ended at /)
})
