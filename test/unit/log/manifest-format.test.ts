/** The bytes of a manifest: what is written is read, and whatever else stands there is noticed. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { decodeManifest, encodeManifest } from '../../../src/log/manifest-format.ts'
import {
  emptyManifest,
  type Manifest,
  type ManifestPartition,
  type ManifestSegment
} from '../../../src/log/manifest.ts'
import { packMessage } from '../../../src/wire/msgpack.ts'
import { chosenSeed, diceOf, replayLine, type Dice } from '../../support/log-random.ts'
import {
  coldManifest,
  plainManifest,
  problemOf,
  randomManifest,
  resealed,
  sampleManifest,
  sealedFile
} from '../../support/manifest-sample.ts'

const FILE = 'test/unit/log/manifest-format.test.ts'

function decoded(bytes: Buffer): Manifest {
  const verdict = decodeManifest(bytes)
  assert.equal(verdict.kind, 'manifest', JSON.stringify(verdict))
  assert.ok(verdict.kind === 'manifest')
  return verdict.manifest
}

/** Maps keep the order in which they were filled; a manifest has none. */
function inOrder(manifest: Manifest): Manifest {
  return { ...manifest, partitions: new Map([...manifest.partitions].sort(([a], [b]) => a - b)) }
}

/** Runs `body` with many dice; a failure says how to repeat it. */
function forSeeds(count: number, body: (dice: Dice) => void): void {
  const first = chosenSeed()
  const rounds = process.env['MILLRACE_SEED'] === undefined ? count : 1
  for (let seed = first; seed < first + rounds; seed++) {
    try {
      body(diceOf(seed))
    } catch (error) {
      throw new Error(replayLine(seed, FILE), { cause: error })
    }
  }
}

describe('a manifest', () => {
  it('comes back as it was written', () => {
    assert.deepEqual(decoded(encodeManifest(sampleManifest())), inOrder(sampleManifest()))
    assert.deepEqual(decoded(encodeManifest(emptyManifest(3, 1))), emptyManifest(3, 1))
  })

  it('comes back as it was written, whatever it holds', () => {
    forSeeds(300, dice => {
      const manifest = randomManifest(dice)
      assert.deepEqual(decoded(encodeManifest(manifest)), inOrder(manifest))
    })
  })

  it('is what docs/formats.md draws: an encoder written from the drawing gives the same bytes', () => {
    forSeeds(100, dice => {
      const manifest = randomManifest(dice)
      assert.ok(encodeManifest(manifest).equals(plainManifest(manifest)))
    })
  })

  it('has the same bytes in whatever order its partitions came', () => {
    const manifest = sampleManifest()
    const reversed = { ...manifest, partitions: new Map([...manifest.partitions].reverse()) }
    assert.ok(encodeManifest(reversed).equals(encodeManifest(manifest)))
  })

  it('says what is new in each commit, though what did not change is not encoded again', () => {
    forSeeds(50, dice => {
      const manifest = randomManifest(dice)
      for (let commit = 1; commit <= 5; commit++) {
        manifest.commit = commit
        for (const partition of manifest.partitions.values()) {
          if (dice.chance(0.3)) manifest.partitions.set(partition.handle, { ...partition, generation: commit })
          else if (dice.chance(0.1)) manifest.partitions.delete(partition.handle)
        }
        assert.deepEqual(decoded(encodeManifest(manifest)), inOrder(manifest))
      }
    })
  })
})

describe('a commit', () => {
  it('looks again only at the partitions that are new', () => {
    const looked: string[] = []
    const [plain] = sampleManifest().partitions.values()
    const watched = (name: string, handle: number): ManifestPartition => {
      assert.ok(plain !== undefined)
      return Object.defineProperty({ ...plain, handle }, 'damaged', { get: () => (looked.push(name), []) })
    }
    const manifest = { ...emptyManifest(0, 1), commit: 1, nextPack: 6 }
    manifest.partitions.set(1, watched('first', 1)).set(2, watched('second', 2))
    encodeManifest(manifest)
    assert.deepEqual([...new Set(looked.splice(0))], ['first', 'second'])
    manifest.partitions.set(2, watched('changed', 2))
    encodeManifest(manifest)
    assert.deepEqual([...new Set(looked)], ['changed'])
  })
})

describe('damage to a manifest', () => {
  const whole = encodeManifest(sampleManifest())

  it('is noticed if one bit turned, anywhere', () => {
    for (let bit = 0; bit < whole.length * 8; bit++) {
      const bytes = Buffer.from(whole)
      bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      assert.equal(decodeManifest(bytes).kind, 'damaged', `bit ${bit & 7} of byte ${bit >> 3}`)
    }
  })

  it('is noticed if the file was cut, anywhere, or goes on behind its end', () => {
    for (let length = 0; length < whole.length; length++) {
      assert.equal(decodeManifest(whole.subarray(0, length)).kind, 'damaged', `cut to ${length} bytes`)
    }
    assert.match(problemOf(Buffer.concat([whole, Buffer.alloc(1)])), /^it has \d+ bytes and says that it has \d+$/)
  })

  it('is told from the work of a newer version, whose checksum is right', () => {
    const parts = [Buffer.from('nothing that this version knows')]
    assert.deepEqual(decodeManifest(sealedFile(parts, 3)), { kind: 'newer', version: 3 })
    assert.deepEqual(decodeManifest(sealedFile(parts, 0xffff_ffff)), { kind: 'newer', version: 0xffff_ffff })
    assert.equal(problemOf(sealedFile(parts, 0)), 'there is no version 0')
    const flipped = Buffer.from(whole)
    flipped.writeUInt32BE(2, 8)
    assert.equal(problemOf(flipped), 'its checksum does not match its bytes')
  })
})

describe('a file with a right checksum that is no manifest', () => {
  const [, ...packed] = partsOf(plainManifest(sampleManifest()))

  it('is refused where its parts do not add up', () => {
    const head = packMessage([2, 5, 9, 31, 1, 1, 6, 3, 0])
    assert.equal(problemOf(sealedFile([])), 'it has no head')
    assert.equal(problemOf(sealedFile([head])), 'it holds 0 partitions and says that it holds 3')
    assert.match(problemOf(sealedFile([head, ...packed].reverse())), /^its head: /)
    assert.match(problemOf(sealedFile([head, ...packed.toReversed()])), /^partition handle 4 is out of order$/)
    assert.match(problemOf(sealedFile([head, ...packed.slice(0, 1), ...packed])), /handle 3 is out of order$/)
    assert.match(problemOf(resealed(Buffer.concat([sealedFile([head]), Buffer.alloc(3)]))), /^the part .* is cut$/)
  })

  it('is refused where a field is missing, too many, or of another kind', () => {
    const fields = [7, 'topics/a~1/0', 1, 0, 0, 0, 0, 0, 0]
    const head = packMessage([2, 5, 9, 31, 1, 1, 6, 1, 0])
    const verdictOn = (value: unknown): string => decodeManifest(sealedFile([head, packMessage(value)])).kind
    assert.equal(verdictOn(fields), 'manifest')
    for (let at = 0; at < fields.length; at++) {
      for (const other of [null, true, 1.5, -1, NaN, 2 ** 60, '../text', [], {}, [[1]], new Date(0), 10n ** 18n]) {
        assert.equal(verdictOn(fields.with(at, other as never)), 'damaged', `${String(other)} as field ${at}`)
      }
      assert.equal(verdictOn(fields.toSpliced(at, 1)), 'damaged', `without field ${at}`)
    }
    assert.equal(verdictOn([...fields, 0]), 'damaged')
    assert.equal(verdictOn('a text'), 'damaged')
  })

  it('is refused where a list claims more items than there are', () => {
    const head = packMessage([2, 5, 9, 31, 1, 1, 6, 1, 0])
    const names = ['leader epochs', 'producers', 'segments', 'damaged ranges']
    names.forEach((name, list) => {
      for (const count of [-1, 1 + names.length - list, 2 ** 50]) {
        const fields = [7, 'topics/a~1/0', 1, 0, 0, 0, 0, 0, 0].with(5 + list, count)
        assert.ok(problemOf(sealedFile([head, packMessage(fields)])).includes(`the number of ${name} is out of range`))
      }
    })
    const runs = [7, 'topics/a~1/0', 1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 2 ** 50, 0, 0, 0, 0]
    assert.match(problemOf(sealedFile([head, packMessage(runs)])), /the number of runs .* is out of range/)
  })

  it('costs no memory, whatever lengths it claims', () => {
    const head = packMessage([2, 5, 9, 31, 1, 1, 6, 1, 0])
    const claims = [
      'ddffffffff',
      'dc ffff',
      'dbffffffff',
      '91'.repeat(5000) + '00',
      'dd02000000',
      'c6ffffffff',
      'c9ffffffff01'
    ]
    const before = process.memoryUsage().rss
    for (const claim of claims) {
      const part = Buffer.from(claim.replaceAll(' ', ''), 'hex')
      assert.match(problemOf(sealedFile([head, part])), /is not made of plain values$/)
      assert.match(problemOf(sealedFile([part])), /^its head is not made of plain values$/)
    }
    const long = sealedFile([head, head])
    long.writeUInt32BE(0xffff_ffff, 24)
    assert.equal(problemOf(resealed(long)), 'its head is longer than the file')
    // A list of 2^25 values would take 256 MiB.
    assert.ok(process.memoryUsage().rss - before < 128 * 1024 * 1024)
  })

  it('gives a verdict and no exception, and what is taken for a manifest is one', () => {
    const kinds = { manifest: 0, damaged: 0, newer: 0 }
    forSeeds(3000, dice => {
      const verdict = decodeManifest(mangled(dice))
      kinds[verdict.kind]++
      if (verdict.kind === 'manifest') assert.deepEqual(decoded(encodeManifest(verdict.manifest)), verdict.manifest)
    })
    if (process.env['MILLRACE_SEED'] === undefined) {
      assert.ok(kinds.manifest > 50 && kinds.damaged > 500, JSON.stringify(kinds))
    }
  })
})

/** The parts of a manifest file, without their lengths. */
function partsOf(file: Buffer): Buffer[] {
  const parts: Buffer[] = []
  for (let at = 24; at < file.length; at += 4 + file.readUInt32BE(at)) {
    parts.push(file.subarray(at + 4, at + 4 + file.readUInt32BE(at)))
  }
  return parts
}

/** Garbage, or a manifest of which some bytes were changed, with a checksum that agrees. */
function mangled(dice: Dice): Buffer {
  const style = dice.below(4)
  if (style === 0) return sealedFile(Array.from({ length: 1 + dice.below(3) }, () => dice.bytes(dice.below(60))))
  if (style === 1) return sealedFile(Array.from({ length: 1 + dice.below(3) }, () => packMessage(randomValue(dice, 4))))
  const bytes = plainManifest(dice.chance(0.5) ? sampleManifest() : randomManifest(dice))
  for (let left = 1 + dice.below(3); left > 0; left--) {
    bytes[24 + dice.below(bytes.length - 24)] = dice.pick([0, 0xc0, 0xdd, 0xff, dice.below(256)])
  }
  return resealed(bytes)
}

function randomValue(dice: Dice, depth: number): unknown {
  const plain = [null, true, dice.below(300), -dice.below(300), dice.unit(), 2 ** 40, 'text', 10n ** 18n, new Date(0)]
  if (depth === 0 || dice.chance(0.5)) return dice.pick<unknown>(plain)
  const values = Array.from({ length: dice.below(12) }, () => randomValue(dice, depth - 1))
  return dice.chance(0.8) ? values : { ...values }
}

/**
 * The golden file was written by encodeManifest(sampleManifest()) when format version 1 was made, and is never changed;
 * a later version gets one of its own.
 */
describe('a manifest written in format version 1', () => {
  const golden = readFileSync(fileURLToPath(new URL('../../fixtures/manifest-v1/manifest', import.meta.url)))

  it('is read', () => {
    assert.deepEqual(decoded(golden), inOrder(sampleManifest()))
  })

  it('is still written byte for byte', () => {
    assert.ok(encodeManifest(sampleManifest()).equals(golden))
  })
})

/** The same for format version 2, which knows cold storage. */
describe('a manifest written in format version 2', () => {
  const golden = readFileSync(fileURLToPath(new URL('../../fixtures/manifest-v2/manifest', import.meta.url)))

  it('is read', () => {
    assert.equal(golden.readUInt32BE(8), 2)
    assert.deepEqual(decoded(golden), inOrder(coldManifest()))
  })

  it('is still written byte for byte', () => {
    assert.ok(encodeManifest(coldManifest()).equals(golden))
  })

  it('is version 1 again when nothing of it is in cold storage any more', () => {
    const manifest = coldManifest()
    const removals = manifest.removals.filter(({ isCold }) => !isCold)
    assert.equal(encodeManifest({ ...manifest, removals }).readUInt32BE(8), 2)
    const local = { ...sampleManifest(), removals }
    assert.equal(encodeManifest(local).readUInt32BE(8), 1)
  })
})

describe('a manifest that says of a cold segment', () => {
  const [cold] = [...coldManifest().partitions.values()].flatMap(({ segments }) => segments.filter(one => one.cold))
  const withSegment = (changes: Partial<ManifestSegment>): Manifest => {
    assert.ok(cold !== undefined)
    const manifest = coldManifest()
    const partition = [...manifest.partitions.values()].find(({ segments }) => segments.some(one => one.cold))
    assert.ok(partition !== undefined)
    const segments = partition.segments.map(one => (one.cold === undefined ? one : { ...one, ...changes }))
    manifest.partitions.set(partition.handle, { ...partition, segments })
    return manifest
  }

  it('that it lies in a pack, in parts, or nowhere is not written', () => {
    const [extent] = cold?.extents ?? []
    assert.ok(extent !== undefined)
    const impossible: Partial<ManifestSegment>[] = [
      { extents: [{ ...extent, pack: 1 }] },
      { extents: [{ ...extent, position: 4 }] },
      { extents: [{ ...extent, blocksPack: 1 }] },
      { extents: [] },
      { cold: { checksum: -1, blocksChecksum: 0, timestampMax: 0 } },
      { cold: { checksum: 0, blocksChecksum: 2 ** 32, timestampMax: 0 } }
    ]
    for (const changes of impossible)
      assert.throws(() => encodeManifest(withSegment(changes)), /it is cold|its objects/)
    assert.ok(encodeManifest(withSegment({})).length > 0)
  })
})
