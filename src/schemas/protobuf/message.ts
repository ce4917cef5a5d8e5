/**
 * Whether bytes are a message of a protobuf schema: every field that it knows is readable, every required one is there.
 * Fields that it does not know may be anything, as always in protobuf. Background thread.
 */
import protobuf from 'protobufjs'
import { parseProtobuf } from './parse.ts'

export interface MessageCheck {
  /** null: they are a message of the first type. Else why not. */
  plain(bytes: Uint8Array): string | null
  /** The same of the type that message indexes before the message name. */
  indexed(bytes: Uint8Array): string | null
}

/** Messages lie in each other far less deep than that. */
const INDEXES_MAX = 64

/** @throws ProtobufSchemaError */
export function messageCheck(text: string): MessageCheck {
  const { messages } = parseProtobuf(text)
  return {
    plain: bytes => problemOf(messages[0], bytes),
    indexed: bytes => {
      const read = readIndexes(bytes)
      if (read === null) return 'the message indexes of its frame are cut off'
      const type = typeAt(messages, read.indexes)
      if (type === null) return `its frame names message ${read.indexes.join('.')}, which the schema does not have`
      return problemOf(type, bytes.subarray(read.end))
    }
  }
}

function problemOf(type: protobuf.Type | undefined, bytes: Uint8Array): string | null {
  if (type === undefined) return 'the schema has no message'
  try {
    type.decode(bytes)
    return null
  } catch (error) {
    // What the decoder throws is about the bytes.
    if (error instanceof Error) return `it is no message ${type.name}: ${error.message}`
    throw error
  }
}

/** How many, then each, as zigzag varints; none stands for the first message. null: they are cut off, or too many. */
function readIndexes(bytes: Uint8Array): { indexes: number[]; end: number } | null {
  const reader = protobuf.Reader.create(bytes)
  try {
    const count = reader.sint32()
    if (count < 0 || count > INDEXES_MAX) return null
    const indexes = Array.from({ length: count }, () => reader.sint32())
    return { indexes: count === 0 ? [0] : indexes, end: reader.pos }
  } catch (error) {
    if (error instanceof RangeError) return null
    throw error
  }
}

function typeAt(messages: readonly protobuf.Type[], indexes: readonly number[]): protobuf.Type | null {
  let level = messages
  let found: protobuf.Type | undefined
  for (const index of indexes) {
    found = level[index]
    if (found === undefined) return null
    level = found.nestedArray.filter(each => each instanceof protobuf.Type)
  }
  return found ?? null
}
