/** The index of special bytes, against a look at each byte. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { SpecialBytes } from '../../../../src/wire/json/special-bytes.ts'

const isSpecial = (byte: number): boolean => byte === 0x22 || byte === 0x5c || byte < 0x20

function nextOf(text: Buffer, end: number, from: number): number {
  let at = from
  while (at < end && !isSpecial(text[at] as number)) at++
  return at
}

/** A sequence that is the same in each run. */
function numbers(seed: number): (below: number) => number {
  let state = seed
  return below => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff
    return (state >>> 8) % below
  }
}

describe('the index of special bytes', () => {
  const special = new SpecialBytes()

  it('finds each of the 256 bytes, at each place of a stretch, or does not', () => {
    for (let byte = 0; byte < 256; byte++) {
      for (let place = 0; place < 34; place++) {
        const text = Buffer.alloc(34, 0x61)
        text[place] = byte
        special.open(text, text.length)
        assert.equal(special.nextFrom(0), isSpecial(byte) ? place : text.length, `byte ${byte} at ${place}`)
      }
    }
  })

  it('looks no further than the end, whatever stands behind', () => {
    const text = Buffer.alloc(100, 0x22)
    text.fill(0x61, 0, 50)
    for (let end = 1; end <= 50; end++) {
      special.open(text, end)
      assert.equal(special.nextFrom(0), end)
      assert.equal(special.nextFrom(end), end)
    }
  })

  it('finds what a look at each byte finds, over the edges of what is looked at in one go, forwards and back', () => {
    const below = numbers(20261201)
    for (const spread of [1, 3, 40, 3000, 70_000]) {
      const text = Buffer.alloc(300_000, 0xe9)
      for (let at = below(spread + 1); at < text.length; at += 1 + below(2 * spread)) {
        text[at] = [0x22, 0x5c, 0x00, 0x1f][below(4)] as number
      }
      special.open(text, text.length - 5)
      let from = 0
      while (from < text.length - 5) {
        const found = special.nextFrom(from)
        assert.equal(found, nextOf(text, text.length - 5, from), `from ${from}, one in ${spread}`)
        from = found + 1 + below(3 * spread)
      }
      const back = below(text.length - 5)
      assert.equal(special.nextFrom(back), nextOf(text, text.length - 5, back))
    }
  })

  it('is open on the text that it was opened with, until it is closed', () => {
    const [one, other] = [Buffer.from('one'), Buffer.from('other')]
    special.open(one, 3)
    assert.deepEqual(
      [special.isOpenOn(one, 3), special.isOpenOn(one, 2), special.isOpenOn(other, 3)],
      [true, false, false]
    )
    special.close()
    assert.equal(special.isOpenOn(one, 3), false)
  })
})
