/**
 * Numbers for JSON values such that two values have the same number exactly if they are equal: order of names aside. One
 * pass over each value, whatever is asked about its parts later. Pure, any thread.
 */
import type { Json } from './json.ts'

export class StructuralIds {
  readonly #idByText = new Map<string, number>()
  readonly #idByPart = new Map<object, number>()

  /** @param value nested at most `limits.schemaDepthMax` deep. */
  of(value: Json | undefined): number {
    if (typeof value !== 'object' || value === null) return this.#idOfText(`v${JSON.stringify(value)}`)
    const known = this.#idByPart.get(value)
    if (known !== undefined) return known
    const id = this.#idOfText(this.#textOf(value))
    this.#idByPart.set(value, id)
    return id
  }

  #textOf(value: object): string {
    if (Array.isArray(value)) return `a${value.map((each: Json) => this.of(each)).join()}`
    const names = Object.entries<Json>({ ...value }).map(([name, each]) => `${JSON.stringify(name)}:${this.of(each)}`)
    return `o${names.sort().join()}`
  }

  #idOfText(text: string): number {
    const known = this.#idByText.get(text)
    if (known !== undefined) return known
    this.#idByText.set(text, this.#idByText.size)
    return this.#idByText.size - 1
  }
}
