/** Archives for the tests of dump and restore: taken apart into their entries, and put together again, rightly or not. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { extract, pack, type Headers } from 'tar-stream'
import { crc32c } from '../../../../src/base/crc32c.ts'
import { temporaryDirectory } from '../../../support/temporary-directory.ts'
import { run } from '../terminal.ts'
import { topicOf, writeDirectory } from './offline-directories.ts'

const golden = fileURLToPath(new URL('../../../fixtures/journal-v1/', import.meta.url))
export const goldenTopics = [topicOf(1, 'orders', 1, 2), topicOf(2, 'notes', 3, 1)]

export interface ArchivedFile {
  readonly header: Headers
  readonly bytes: Buffer
}

/** A data directory of two topics, nothing of it settled. */
export function goldenDirectory(t: TestContext): Promise<string> {
  return writeDirectory(t, golden, goldenTopics)
}

/** An archive of it. */
export async function goldenArchive(t: TestContext, name = 'golden.tar', ...words: readonly string[]): Promise<string> {
  const output = join(temporaryDirectory(t), name)
  const { code, stderr } = await run(['dump', '--data-dir', await goldenDirectory(t), '--output', output, ...words])
  if (code !== 0) throw new Error(stderr)
  return output
}

/** All entries, in order. */
export async function entriesOf(path: string): Promise<ArchivedFile[]> {
  const bytes = readFileSync(path)
  const archive = extract()
  archive.end(path.endsWith('.gz') ? gunzipSync(bytes) : bytes)
  const entries: ArchivedFile[] = []
  for await (const entry of archive) entries.push({ header: entry.header, bytes: await buffer(entry) })
  return entries
}

/** Writes an archive of these entries. Their sizes are those of their bytes, whatever the headers say. */
export async function writeEntries(path: string, entries: readonly ArchivedFile[]): Promise<void> {
  writeFileSync(path, await tarOf(entries))
}

/** The same in memory. */
export async function tarOf(entries: readonly ArchivedFile[]): Promise<Buffer> {
  const archive = pack()
  for (const { header, bytes } of entries) archive.entry({ ...header, size: bytes.length }, bytes)
  archive.finalize()
  return buffer(archive)
}

/** What dump.json says, loosely: tests change it. */
export interface LooseList {
  version: number
  total_bytes: number
  file_count: number
  files: { path: string; bytes: number; crc32c: number; topic: number | null }[]
  [field: string]: unknown
}

/** The entries with another list. */
export function withList(entries: readonly ArchivedFile[], change: (list: LooseList) => void): ArchivedFile[] {
  const [first, ...rest] = entries
  if (first === undefined) throw new RangeError('an archive has a list')
  const list = JSON.parse(first.bytes.toString()) as LooseList
  change(list)
  return [{ ...first, bytes: Buffer.from(JSON.stringify(list)) }, ...rest]
}

/** The entries and one more file, which the list knows. */
export function withListedFile(entries: readonly ArchivedFile[], path: string, bytes: Buffer): ArchivedFile[] {
  const listed = withList(entries, list => {
    list.files.push({ path, bytes: bytes.length, crc32c: crc32c(bytes, 0, bytes.length), topic: null })
    list.file_count++
    list.total_bytes += bytes.length
  })
  return [...listed, { header: { name: path, type: 'file', mode: 0o600 }, bytes }]
}
