/** Server-sent events as text, read back as the HTML standard says. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BrokerError } from '../../../../src/model/errors.ts'
import {
  assignmentEvent,
  endEvent,
  FILLER,
  HEARTBEAT,
  openingText,
  writeEvents
} from '../../../../src/wire/json/event-text.ts'
import { encodeFrames } from '../../../support/record-frames.ts'

const texts = ['{"partition":3,"value":"a"}', '{"partition":3,"value":"💥 \\n\\r"}']
const answer = encodeFrames({
  nextOffset: 9n,
  highWatermark: 12,
  records: texts.map((text, i) => ({ offset: 7 + i, text }))
})
const skipping = encodeFrames({
  nextOffset: 5n,
  highWatermark: 12,
  records: [],
  skipped: { requested: 1, earliest: 5, latest: 12 }
})

describe('the text of events', () => {
  it('has one event a record, with the record as it stands in a JSON answer, and the next offset as its id', () => {
    const text = writeEvents(answer, { id: ['', ''], topic: null, partition: 3 })
    assert.equal(text.toString(), `id: 8\ndata: ${texts[0]}\n\nid: 9\ndata: ${texts[1]}\n\n`)
  })

  it('names the places of the other partitions around that of the record', () => {
    const text = writeEvents(answer, { id: ['4,0,1,', ',77'], topic: null, partition: 3 })
    assert.match(text.toString(), /^id: 4,0,1,8,77\ndata: .*\n\nid: 4,0,1,9,77\n/)
  })

  it('names the topic first where there may be several, and then has no ids', () => {
    const text = writeEvents(answer, { id: null, topic: 'a.b', partition: 3 })
    assert.equal(text.toString().split('\n\n')[0], 'data: {"topic":"a.b","partition":3,"value":"a"}')
    assert.ok(!text.includes('id:'))
  })

  it('tells what was passed over before the records, with the id of where the read went on', () => {
    const fields = '"partition":3,"requested":1,"earliest":5,"latest":12}'
    assert.equal(
      writeEvents(skipping, { id: ['4,', ''], topic: null, partition: 3 }).toString(),
      `event: skipped\nid: 4,5\ndata: {${fields}\n\n`
    )
    assert.equal(
      writeEvents(skipping, { id: null, topic: 't', partition: 3 }).toString(),
      `event: skipped\ndata: {"topic":"t",${fields}\n\n`
    )
  })

  it('is empty where there is nothing to tell', () => {
    const nothing = encodeFrames({ nextOffset: 9n, highWatermark: 9, records: [] })
    assert.equal(writeEvents(nothing, { id: ['', ''], topic: null, partition: 0 }).length, 0)
  })

  it('of each kind ends with its empty line, or is one that means nothing', () => {
    const end = endEvent(new BrokerError('TOPIC_NOT_FOUND', { topic: 't\n' }), 'a\n\nb').toString()
    assert.equal(end, 'event: end\ndata: {"code":"TOPIC_NOT_FOUND","error":"a\\n\\nb"}\n\n')
    assert.equal(assignmentEvent('{"generation":1}').toString(), 'event: assignment\ndata: {"generation":1}\n\n')
    assert.equal(openingText(1000, null).toString(), 'retry: 1000\n\n')
    assert.equal(openingText(1000, '8,3').toString(), 'retry: 1000\nid: 8,3\n\n')
    for (const comment of [FILLER, HEARTBEAT]) assert.match(comment.toString(), /^:[^\n]*\n+$/)
  })
})
