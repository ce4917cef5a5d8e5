/**
 * Whether data written by one Avro schema can be read by another: the rules of "Schema Resolution" in the Avro 1.12
 * specification as Java's SchemaCompatibility applies them, which is what Confluent's registry asks. Pure, background thread.
 *
 *   writer            reader that takes it
 *   a primitive       the same; int → long float double, long → float double, float → double, string ↔ bytes
 *   array, map        the same, if what is in it goes together
 *   fixed             of the same name and size
 *   enum              of the same name, with every symbol or a default
 *   record            of the same name; each field of the reader is a field of the writer or has a default
 *   union             one that takes every branch
 *   not a union       a union with a branch that takes it
 *
 * Names are the same if their last parts are, or if an alias of the reader is the writer's full name.
 */
import { alike, below, difference, Differences, PairMemo } from '../differences.ts'
import type { Difference } from '../differences.ts'
import { nameOf, simpleName } from './model.ts'
import type { AvroType, EnumType, FixedType, PrimitiveKind, RecordField, RecordType, UnionType } from './model.ts'

const promotions: Partial<Readonly<Record<AvroType['kind'], readonly PrimitiveKind[]>>> = {
  int: ['long', 'float', 'double'],
  long: ['float', 'double'],
  float: ['double'],
  string: ['bytes'],
  bytes: ['string']
}

/**
 * What keeps data that was written by `writer` from being read by `reader`.
 * @throws ComparisonLimitError
 */
export function avroDifferences(writer: AvroType, reader: AvroType): readonly Difference[] {
  return new Resolution().of(writer, reader)
}

class Resolution {
  readonly #memo = new PairMemo<AvroType, AvroType>((writer, reader) => this.#compare(writer, reader))
  readonly #byName = new Map<UnionType, ReadonlyMap<string, AvroType>>()

  of(writer: AvroType, reader: AvroType): readonly Difference[] {
    return this.#memo.of(writer, reader)
  }

  #compare(writer: AvroType, reader: AvroType): readonly Difference[] {
    if (writer.kind === 'union') return this.#writerUnion(writer, reader)
    if (reader.kind === 'union') return this.#readerUnion(writer, reader)
    if (writer.kind === 'record' && reader.kind === 'record') return this.#records(writer, reader)
    if (writer.kind === 'enum' && reader.kind === 'enum') return enumDifferences(writer, reader)
    if (writer.kind === 'fixed' && reader.kind === 'fixed') return fixedDifferences(writer, reader)
    if (writer.kind === 'array' && reader.kind === 'array') return below(['items'], this.of(writer.items, reader.items))
    if (writer.kind === 'map' && reader.kind === 'map') return below(['values'], this.of(writer.values, reader.values))
    const isTaken = writer.kind === reader.kind || promotions[writer.kind]?.some(kind => kind === reader.kind) === true
    return isTaken ? alike : difference(`type ${nameOf(writer)} cannot be read as ${nameOf(reader)}`)
  }

  #writerUnion(writer: UnionType, reader: AvroType): readonly Difference[] {
    const all = new Differences()
    for (const branch of writer.branches) {
      const found = this.of(branch, reader)
      if (found.length === 0) continue
      const isLacking = reader.kind === 'union'
      all.add(
        isLacking ? found : difference(`branch ${nameOf(branch)} of the union cannot be read as ${nameOf(reader)}`)
      )
    }
    return all.found
  }

  #readerUnion(writer: AvroType, reader: UnionType): readonly Difference[] {
    // The branch of the same name first: a long union is mostly unchanged.
    const name = nameOf(writer)
    const likely = this.#branchesOf(reader).get(name)
    if (likely !== undefined && this.of(writer, likely).length === 0) return alike
    const isTaken = reader.branches.some(branch => this.of(writer, branch).length === 0)
    return isTaken ? alike : difference(`no branch of the union takes ${name}`)
  }

  #branchesOf(union: UnionType): ReadonlyMap<string, AvroType> {
    const known = this.#byName.get(union)
    if (known !== undefined) return known
    const made = new Map(union.branches.map(branch => [nameOf(branch), branch]))
    this.#byName.set(union, made)
    return made
  }

  #records(writer: RecordType, reader: RecordType): readonly Difference[] {
    const renamed = nameDifferences(writer, reader)
    if (renamed.length > 0) return renamed
    const all = new Differences()
    const byName = new Map(writer.fields.map(field => [field.name, field]))
    for (const field of reader.fields) {
      const [written, ...further] = writtenFields(byName, field)
      if (further.length > 0) {
        all.add(difference(`field '${field.name}' and its aliases name several written fields`, 'fields', field.name))
      } else if (written !== undefined) all.add(below(['fields', field.name], this.of(written.type, field.type)))
      else if (!field.hasDefault && !hasEnumDefault(field.type)) {
        all.add(difference(`field '${field.name}' is not written and has no default`, 'fields', field.name))
      }
    }
    return all.found
  }
}

/** What the writer calls by the name or an alias of the reader's field. */
function writtenFields(byName: ReadonlyMap<string, RecordField>, field: RecordField): RecordField[] {
  const names = new Set([field.name, ...field.aliases])
  return [...names].map(name => byName.get(name)).filter(found => found !== undefined)
}

function hasEnumDefault(type: AvroType): boolean {
  return type.kind === 'enum' && type.defaultSymbol !== null
}

function enumDifferences(writer: EnumType, reader: EnumType): readonly Difference[] {
  const all = new Differences()
  all.add(nameDifferences(writer, reader))
  if (reader.defaultSymbol !== null) return all.found
  for (const symbol of writer.symbols) {
    if (!reader.symbols.has(symbol)) all.add(difference(`enum no longer has the symbol '${symbol}'`, 'symbols'))
  }
  return all.found
}

function fixedDifferences(writer: FixedType, reader: FixedType): readonly Difference[] {
  if (writer.size === reader.size) return nameDifferences(writer, reader)
  return [...nameDifferences(writer, reader), ...difference(`size ${writer.size} became ${reader.size}`, 'size')]
}

function nameDifferences(
  writer: RecordType | EnumType | FixedType,
  reader: RecordType | EnumType | FixedType
): readonly Difference[] {
  const isSame = simpleName(writer.name) === simpleName(reader.name) || reader.aliases.includes(writer.name)
  return isSame ? alike : difference(`name ${writer.name} became ${reader.name} without an alias`, 'name')
}
