/** The patched copy of uWebSockets.js: what is changed in it, what is refused, and where it lies. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import type { TestContext } from 'node:test'
import { ElfRefused, withClassicLibcNames } from '../../../../../src/gateway/http/engines/elf-patch.ts'
import {
  cacheFolders,
  loadUws,
  pinnedChecksums,
  storePatched
} from '../../../../../src/gateway/http/engines/uws-loader.ts'

const packageFolder = dirname(createRequire(import.meta.url).resolve('uWebSockets.js'))
const x64 = readFileSync(join(packageFolder, 'uws_linux_x64_137.node'))

function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-uws-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Places at which two files of one length differ. */
function differences(one: Buffer, other: Buffer): number[] {
  assert.equal(one.length, other.length)
  const places: number[] = []
  for (let i = 0; i < one.length; i++) if (one[i] !== other[i]) places.push(i)
  return places
}

describe('the patched binary', () => {
  test('exists for every pinned one, and pins are those of the installed package', () => {
    for (const [name, checksum] of pinnedChecksums) {
      const original = readFileSync(join(packageFolder, name))
      assert.equal(createHash('sha256').update(original).digest('hex'), checksum, name)
      const patched = withClassicLibcNames(original)
      // Per twin: up to two bytes of the name's place and the version index; once: the weak flag.
      const places = differences(original, patched)
      assert.ok(places.length >= 5 && places.length <= 10, `${name} differs in ${places.length} bytes`)
    }
  })

  test('is patched once: a second time there is nothing left to rename', () => {
    assert.throws(() => withClassicLibcNames(withClassicLibcNames(x64)), ElfRefused)
  })

  test('leaves the original as it was', () => {
    const copy = Buffer.from(x64)
    withClassicLibcNames(copy)
    assert.ok(copy.equals(x64))
  })

  test('is refused for whatever is not laid out as expected', () => {
    const change = (at: number, byte: number): Buffer => {
      const copy = Buffer.from(x64)
      copy[at] = byte
      return copy
    }
    const sectionsAt = Number(x64.readBigUInt64LE(40))
    const noVersionNeeds = Buffer.from(x64)
    for (let at = sectionsAt; at < sectionsAt + x64.readUInt16LE(60) * 64; at += 64) {
      if (noVersionNeeds.readUInt32LE(at + 4) === 0x6ffffffe) noVersionNeeds.writeUInt32LE(1, at + 4)
    }
    const foreign = Buffer.from(x64)
    foreign.write('__isoc24_', foreign.indexOf('__isoc23_strtol\0'), 'latin1')
    const cases: [string, Buffer, RegExp][] = [
      ['empty', Buffer.alloc(0), /not an ELF/],
      ['text', Buffer.alloc(100, 'x'), /not an ELF/],
      ['32 bits', change(4, 1), /64-bit/],
      ['an executable', change(16, 2), /shared object/],
      ['another machine', change(18, 3), /unknown machine/],
      ['cut short', x64.subarray(0, x64.length - 5000), /outside the file/],
      ['no version needs', noVersionNeeds, /expected one version need section, found 0/],
      ['a foreign symbol of 2.38', foreign, /has no classic twin/]
    ]
    for (const [what, file, reason] of cases) {
      assert.throws(() => withClassicLibcNames(file), { name: 'ElfRefused', message: reason }, what)
    }
  })
})

describe('the copy in the cache', () => {
  const bytes = Buffer.from('patched')

  test('is written once, privately, and left alone afterwards', t => {
    const folder = join(temporaryFolder(t), 'cache', 'millrace')
    const path = storePatched(folder, bytes, 'a'.repeat(64))
    const first = statSync(path)
    assert.equal(statSync(folder).mode & 0o777, 0o700)
    assert.equal(first.mode & 0o777, 0o600)
    assert.equal(storePatched(folder, bytes, 'a'.repeat(64)), path)
    assert.equal(statSync(path).ino, first.ino)
    assert.deepEqual(readdirSync(folder).length, 1)
  })

  test('is replaced when its bytes are not those that belong there', t => {
    const folder = temporaryFolder(t)
    const path = storePatched(folder, bytes, 'a'.repeat(64))
    writeFileSync(path, 'something else')
    storePatched(folder, bytes, 'a'.repeat(64))
    assert.ok(readFileSync(path).equals(bytes))
  })

  test('never goes through a link or into a folder that others can write', t => {
    const base = temporaryFolder(t)
    const open = join(base, 'open')
    mkdirSync(open)
    chmodSync(open, 0o777)
    assert.throws(() => storePatched(open, bytes, 'a'.repeat(64)), /not a private folder/)
    const link = join(base, 'link')
    symlinkSync(temporaryFolder(t), link)
    assert.throws(() => storePatched(link, bytes, 'a'.repeat(64)), /not a private folder/)
  })

  test('is looked for in the cache of the user, then in the temporary folder', () => {
    const folders = cacheFolders({ XDG_CACHE_HOME: '/x', HOME: '/h' })
    assert.deepEqual(folders.slice(0, 2), ['/x/millrace', '/h/.cache/millrace'])
    assert.ok(folders[2]?.startsWith(tmpdir()))
    assert.equal(cacheFolders({ XDG_CACHE_HOME: 'relative', HOME: '/h' })[0], '/h/.cache/millrace')
  })

  test('is used when the library does not load as shipped, even with an unusable cache of the user', t => {
    const base = temporaryFolder(t)
    const notFolder = join(base, 'file')
    writeFileSync(notFolder, '')
    const load = loadUws({ XDG_CACHE_HOME: notFolder, HOME: base })
    if (load.uws === null) {
      t.skip(load.reason)
      return
    }
    if (load.patchedPath === null) t.diagnostic('loads as shipped here')
    else assert.ok(load.patchedPath.startsWith(join(base, '.cache', 'millrace')) && existsSync(load.patchedPath))
  })
})
