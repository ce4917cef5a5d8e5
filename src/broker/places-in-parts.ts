/**
 * Going through very many places of offsets: others have their turn between parts of them. Main thread.
 */
import { PLACES_AT_ONCE } from '../model/classic-groups.ts'

/** @returns what is found of each, in their order; no turn is given if there are few. */
export async function inParts<Place, Found>(places: readonly Place[], find: (place: Place) => Found): Promise<Found[]> {
  const found: Found[] = []
  for (const place of places) {
    if (found.length > 0 && found.length % PLACES_AT_ONCE === 0) await new Promise(resolve => setImmediate(resolve))
    found.push(find(place))
  }
  return found
}
