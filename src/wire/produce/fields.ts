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

const names: readonly (readonly [Buffer, ProduceField])[] = [
  [Buffer.from('key'), produceFields.key],
  [Buffer.from('value'), produceFields.value],
  [Buffer.from('partition'), produceFields.partition],
  [Buffer.from('sequence'), produceFields.sequence],
  [Buffer.from('headers'), produceFields.headers],
  [Buffer.from('records'), produceFields.records],
  [Buffer.from('producer_id'), produceFields.producerId],
  [Buffer.from('encoding'), produceFields.encoding]
]

/** The field whose name is bytes[start, start + length). */
export function fieldNamed(bytes: Buffer, start: number, length: number): ProduceField {
  for (let n = 0; n < names.length; n++) {
    const [name, field] = names[n] as readonly [Buffer, ProduceField]
    if (name.length !== length) continue
    let i = 0
    while (i < length && bytes[start + i] === name[i]) i++
    if (i === length) return field
  }
  return produceFields.other
}
