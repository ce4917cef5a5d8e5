/** Bytes that rot on the disk. */
import assert from 'node:assert/strict'
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Flips one bit in the middle of that text, wherever it stands in the files of a folder. */
export function flipIn(folder: string, text: string): void {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name)
    const bytes = readFileSync(path)
    const at = bytes.indexOf(text)
    if (at < 0) continue
    bytes.writeUInt8(bytes.readUInt8(at + 3) ^ 0x10, at + 3)
    writeFileSync(path, bytes)
    return
  }
  assert.fail(`'${text}' stands in no file of ${folder}`)
}
