/** Names of the fields of a produce body and of its records, in whatever form it comes. Pure. */

/** Which field a name is; `other`: one that the broker does not know. */
export const produceFields = {
  other: 0,
  key: 1,
  value: 2,
  partition: 3,
  sequence: 4,
  headers: 5,
  records: 6,
  producerId: 7,
  encoding: 8
} as const
export type ProduceField = (typeof produceFields)[keyof typeof produceFields]

/** The longest name: what is longer is another field. */
export const FIELD_NAME_BYTES_MAX = 11

interface FieldName {
  readonly text: Buffer
  readonly field: ProduceField
}

const names: readonly FieldName[] = [
  { text: Buffer.from('key'), field: produceFields.key },
  { text: Buffer.from('value'), field: produceFields.value },
  { text: Buffer.from('partition'), field: produceFields.partition },
  { text: Buffer.from('sequence'), field: produceFields.sequence },
  { text: Buffer.from('headers'), field: produceFields.headers },
  { text: Buffer.from('records'), field: produceFields.records },
  { text: Buffer.from('producer_id'), field: produceFields.producerId },
  { text: Buffer.from('encoding'), field: produceFields.encoding }
]

/** The field whose name is bytes[start, start + length). */
export function fieldNamed(bytes: Buffer, start: number, length: number): ProduceField {
  for (let n = 0; n < names.length; n++) {
    const { text, field } = names[n] as FieldName
    if (text.length !== length) continue
    let i = 0
    while (i < length && bytes[start + i] === text[i]) i++
    if (i === length) return field
  }
  return produceFields.other
}
