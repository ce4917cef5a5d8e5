/** Larger copies of typed arrays, for tables that grow by doubling. The old array is garbage afterwards. */

export function grownInt32(old: Int32Array, capacity: number): Int32Array<ArrayBuffer> {
  const array = new Int32Array(capacity)
  array.set(old)
  return array
}

export function grownUint32(old: Uint32Array, capacity: number): Uint32Array<ArrayBuffer> {
  const array = new Uint32Array(capacity)
  array.set(old)
  return array
}

export function grownUint16(old: Uint16Array, capacity: number): Uint16Array<ArrayBuffer> {
  const array = new Uint16Array(capacity)
  array.set(old)
  return array
}

export function grownUint8(old: Uint8Array, capacity: number): Uint8Array<ArrayBuffer> {
  const array = new Uint8Array(capacity)
  array.set(old)
  return array
}

export function grownFloat64(old: Float64Array, capacity: number): Float64Array<ArrayBuffer> {
  const array = new Float64Array(capacity)
  array.set(old)
  return array
}
