/**
 * Protobuf text (.proto of proto2, proto3 and editions) → the types that it declares. Imports are never fetched: the
 * well-known types that protobufjs carries may be imported, all else is refused. Background thread.
 */
import protobuf from 'protobufjs'

/** The text is no protobuf schema that we can use; `message` says what is wrong with it and where. */
export class ProtobufSchemaError extends Error {
  override readonly name = 'ProtobufSchemaError'
}

/** What a text declares. */
export interface ParsedProtobuf {
  /** Of its package, without a dot in front; '': it names none. */
  readonly packageName: string
  /** Where its types are, imported ones beside them. All references are resolved. */
  readonly root: protobuf.Root
  /** Declared by the text itself at its top, in the order of the text. */
  readonly messages: readonly protobuf.Type[]
  readonly enums: readonly protobuf.Enum[]
}

/** null: it is one. Else what is wrong, and where. */
export function protobufProblem(text: string): string | null {
  try {
    parseProtobuf(text)
    return null
  } catch (error) {
    if (error instanceof ProtobufSchemaError) return error.message
    throw error
  }
}

/** @throws ProtobufSchemaError */
export function parseProtobuf(text: string): ParsedProtobuf {
  if (isDescriptor(text)) {
    throw new ProtobufSchemaError('it is a serialized descriptor: send the text of the .proto file')
  }
  const root = new protobuf.Root()
  const parsed = reported(() => protobuf.parse(text, root, { keepCase: true }))
  const packageName = parsed.package ?? ''
  const own = packageName === '' ? root : root.lookup(packageName)
  const declared = own instanceof protobuf.Namespace ? [...own.nestedArray] : []
  for (const file of [...(parsed.imports ?? []), ...(parsed.weakImports ?? [])]) addImport(root, file)
  reported(() => root.resolveAll())
  const messages = declared.filter(each => each instanceof protobuf.Type)
  for (const type of messages) checkType(type)
  if (messages.length === 0) throw new ProtobufSchemaError('it declares no message')
  return { packageName, root, messages, enums: declared.filter(each => each instanceof protobuf.Enum) }
}

/** The compiler's own form, in base64, which some clients send: it holds no character of a .proto statement. */
function isDescriptor(text: string): boolean {
  return /^[A-Za-z0-9+/\s]+={0,2}\s*$/.test(text)
}

function addImport(root: protobuf.Root, file: string): void {
  const known = protobuf.common.get(file)
  if (known?.nested === undefined) {
    throw new ProtobufSchemaError(`it imports ${JSON.stringify(file)}: only google/protobuf types may be imported`)
  }
  const nested = known.nested
  reported(() => root.addJSON(nested))
}

/** What protoc would refuse and protobufjs takes. */
function checkType(type: protobuf.Type): void {
  for (const field of type.fieldsArray) {
    if (field.id < 1 || field.id > 536_870_911 || (field.id >= 19_000 && field.id <= 19_999)) {
      throw new ProtobufSchemaError(
        `field ${field.name} of ${type.name} has the number ${field.id}, which none may have`
      )
    }
  }
  for (const nested of type.nestedArray) if (nested instanceof protobuf.Type) checkType(nested)
}

/** What protobufjs throws is about the text: turned into our error. */
function reported<Result>(run: () => Result): Result {
  try {
    return run()
  } catch (error) {
    if (error instanceof RangeError) throw new ProtobufSchemaError('its types are nested too deeply')
    if (error instanceof Error) throw new ProtobufSchemaError(error.message)
    throw error
  }
}
