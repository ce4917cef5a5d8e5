/**
 * What a comparison found, bounded: a schema of 512 KiB may differ in 50,000 places, and an answer repeats a few of them.
 * Pure, any thread.
 */
import { limits } from '../model/limits.ts'

/** Collects sentences up to `limits.schemaProblemsMax`, each cut at `limits.schemaProblemCharactersMax`. */
export class Problems {
  readonly sentences: string[] = []

  /** True once further sentences would be dropped: a comparison may stop there. */
  get isFull(): boolean {
    return this.sentences.length >= limits.schemaProblemsMax
  }

  /** Keeps a sentence, unless there are enough or it stands there already. */
  add(sentence: string): void {
    if (this.isFull) return
    const cut = cutProblem(sentence)
    if (!this.sentences.includes(cut)) this.sentences.push(cut)
  }
}

/** The sentence, or its beginning and `…`: at most `limits.schemaProblemCharactersMax` UTF-16 units. */
export function cutProblem(sentence: string): string {
  if (sentence.length <= limits.schemaProblemCharactersMax) return sentence
  return `${sentence.slice(0, limits.schemaProblemCharactersMax - 1).toWellFormed()}…`
}
