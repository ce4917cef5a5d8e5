/**
 * Rewrites a copy of a Linux shared object so that it asks for less of glibc. Pure: bytes in, new bytes out; any thread.
 *
 * Compilers on glibc 2.38 name the C23 twins of strtol, strtoul and sscanf (they also read `0b…`). The prebuilt
 * uWebSockets.js needs 2.38 for nothing else. Each twin's name is its classic name behind a prefix of nine bytes, so
 * moving `st_name` by nine renames the reference without a new string table:
 *
 *   .dynsym   st_name += 9            `__isoc23_strtol` → `strtol`
 *   .gnu.version   index of the symbol → index of libc's base version (GLIBC_2.2.5 on x64, GLIBC_2.17 on arm64)
 *   .gnu.version_r GLIBC_2.38 gets VER_FLG_WEAK: the loader no longer refuses when the version is missing
 *
 * It must never guess: whatever does not look exactly as described is refused, with the reason.
 */

/** A file is not laid out as this patch expects; it was not touched. */
export class ElfRefused extends Error {
  override readonly name = 'ElfRefused'
}

const PREFIX = '__isoc23_'
const TWINS: readonly string[] = ['__isoc23_strtol', '__isoc23_strtoul', '__isoc23_sscanf']
const NEWER_VERSION = 'GLIBC_2.38'
const VER_FLG_WEAK = 2

const SECTION_DYNSYM = 11
const SECTION_VERNEED = 0x6fff_fffe
const SECTION_VERSYM = 0x6fff_ffff
const SYMBOL_BYTES = 24
const SECTION_HEADER_BYTES = 64

/** e_machine → the version that every classic libc symbol of that machine has. */
const baseVersions: ReadonlyMap<number, string> = new Map([
  [62, 'GLIBC_2.2.5'],
  [183, 'GLIBC_2.17']
])

interface Section {
  readonly type: number
  readonly start: number
  readonly bytes: number
  readonly link: number
}

/** The version entries of libc.so.6: where the newer one lies, and the indexes of both. */
interface LibcVersions {
  readonly newerEntryAt: number
  readonly newerIndex: number
  readonly baseIndex: number
}

function check(condition: boolean, reason: string): asserts condition {
  if (!condition) throw new ElfRefused(reason)
}

function readSections(file: Buffer): Section[] {
  check(file.length >= 64 && file.readUInt32BE(0) === 0x7f454c46, 'not an ELF file')
  check(file[4] === 2 && file[5] === 1, 'not 64-bit little-endian')
  check(file.readUInt16LE(16) === 3, 'not a shared object')
  const tableAt = Number(file.readBigUInt64LE(40))
  const count = file.readUInt16LE(60)
  check(file.readUInt16LE(58) === SECTION_HEADER_BYTES && count > 0, 'unknown section header size')
  check(tableAt + count * SECTION_HEADER_BYTES <= file.length, 'section headers lie outside the file')
  return Array.from({ length: count }, (_, i) => {
    const at = tableAt + i * SECTION_HEADER_BYTES
    return {
      type: file.readUInt32LE(at + 4),
      start: Number(file.readBigUInt64LE(at + 24)),
      bytes: Number(file.readBigUInt64LE(at + 32)),
      link: file.readUInt32LE(at + 40)
    }
  })
}

function onlySection(file: Buffer, sections: readonly Section[], type: number, name: string): Section {
  const found = sections.filter(section => section.type === type)
  const section = found[0]
  check(section !== undefined && found.length === 1, `expected one ${name} section, found ${found.length}`)
  check(section.start + section.bytes <= file.length, `${name} lies outside the file`)
  return section
}

function readName(file: Buffer, strings: Section, offset: number): string {
  check(offset < strings.bytes, 'a name lies outside the string table')
  const start = strings.start + offset
  const end = file.indexOf(0, start)
  check(end >= start && end < strings.start + strings.bytes, 'a name does not end in the string table')
  return file.toString('latin1', start, end)
}

/**
 * Walks the version needs.
 *
 *   Verneed: 0 u16 version=1 · 2 u16 count · 4 u32 file name · 8 u32 first aux, relative · 12 u32 next, relative, 0 ends
 *   Vernaux: 0 u32 hash · 4 u16 flags · 6 u16 index in .gnu.version · 8 u32 name · 12 u32 next, relative, 0 ends
 */
function findLibcVersions(file: Buffer, needs: Section, strings: Section, baseVersion: string): LibcVersions {
  const end = needs.start + needs.bytes
  let newerEntryAt = -1
  let baseIndex = -1
  for (let at = needs.start, more = true; more;) {
    check(at + 16 <= end && file.readUInt16LE(at) === 1, 'unknown version need')
    const isLibc = readName(file, strings, file.readUInt32LE(at + 4)) === 'libc.so.6'
    let entryAt = at + file.readUInt32LE(at + 8)
    for (let left = file.readUInt16LE(at + 2); left > 0; left--) {
      check(entryAt + 16 <= end, 'a version entry lies outside its section')
      const name = readName(file, strings, file.readUInt32LE(entryAt + 8))
      check(isLibc || name !== NEWER_VERSION, `${NEWER_VERSION} is asked of another library than libc`)
      if (isLibc && name === NEWER_VERSION) newerEntryAt = entryAt
      if (isLibc && name === baseVersion) baseIndex = file.readUInt16LE(entryAt + 6)
      entryAt += file.readUInt32LE(entryAt + 12)
    }
    const next = file.readUInt32LE(at + 12)
    more = next !== 0
    at += next
  }
  check(newerEntryAt >= 0, `${NEWER_VERSION} is not needed`)
  check(baseIndex >= 2, `${baseVersion} of libc is not among the needed versions`)
  return { newerEntryAt, newerIndex: file.readUInt16LE(newerEntryAt + 6), baseIndex }
}

/**
 * A copy of `original` that loads on glibc without the 2.38 symbols.
 *
 * @throws ElfRefused if the file is not a shared object of a known machine, or needs 2.38 for anything but the twins.
 * @cost one copy of the file.
 */
export function withClassicLibcNames(original: Buffer): Buffer {
  const file = Buffer.from(original)
  const sections = readSections(file)
  const baseVersion = baseVersions.get(file.readUInt16LE(18))
  check(baseVersion !== undefined, 'unknown machine')
  const symbols = onlySection(file, sections, SECTION_DYNSYM, 'dynamic symbol')
  const versions = onlySection(file, sections, SECTION_VERSYM, 'symbol version')
  const needs = onlySection(file, sections, SECTION_VERNEED, 'version need')
  const strings = sections[symbols.link]
  check(strings !== undefined && strings.start + strings.bytes <= file.length, 'the string table is missing')
  check(needs.link === symbols.link, 'versions and symbols name different string tables')
  const count = symbols.bytes / SYMBOL_BYTES
  check(Number.isInteger(count) && versions.bytes === count * 2, 'symbols and their versions differ in number')

  const { newerEntryAt, newerIndex, baseIndex } = findLibcVersions(file, needs, strings, baseVersion)
  let renamedCount = 0
  for (let i = 0; i < count; i++) {
    const versionAt = versions.start + i * 2
    if ((file.readUInt16LE(versionAt) & 0x7fff) !== newerIndex) continue
    const symbolAt = symbols.start + i * SYMBOL_BYTES
    const nameOffset = file.readUInt32LE(symbolAt)
    const name = readName(file, strings, nameOffset)
    check(TWINS.includes(name), `${name} needs ${NEWER_VERSION} and has no classic twin`)
    check(file.readUInt16LE(symbolAt + 6) === 0, `${name} is defined in the file itself`)
    file.writeUInt32LE(nameOffset + PREFIX.length, symbolAt)
    file.writeUInt16LE(baseIndex, versionAt)
    renamedCount++
  }
  check(renamedCount > 0, `no symbol needs ${NEWER_VERSION}`)
  file.writeUInt16LE(file.readUInt16LE(newerEntryAt + 4) | VER_FLG_WEAK, newerEntryAt + 4)
  return file
}
