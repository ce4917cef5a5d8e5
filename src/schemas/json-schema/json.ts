/** Parsed JSON and the few questions that comparing schemas asks of it. Pure, any thread. */

export type Json = null | boolean | number | string | readonly Json[] | JsonObject
export interface JsonObject {
  readonly [name: string]: Json | undefined
}

/** True of `{…}`, not of null or an array. */
export function isJsonObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** What stands in the object under that name of its own: `toString` is not in `{}`. */
export function own(object: JsonObject, name: string): Json | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined
}

/** True if arrays and objects lie in each other deeper than that. Not recursive: the text is the client's. */
export function isDeeperThan(value: Json, depthMax: number): boolean {
  let level: Json[] = [value]
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > depthMax) return true
    const below: Json[] = []
    for (const each of level) {
      if (typeof each !== 'object' || each === null) continue
      for (const child of Object.values(each)) if (child !== undefined) below.push(child)
    }
    level = below.filter(each => typeof each === 'object' && each !== null)
  }
  return false
}
