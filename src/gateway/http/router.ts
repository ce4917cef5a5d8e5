/**
 * Finds the route of a request. Compiled once from the table; main thread.
 * One path may match one pattern only: the table is checked for that when it is compiled.
 */
import { assert } from '../../base/assert.ts'
import type { Route } from './route.ts'

/** A pattern with the routes of its methods. */
interface Place {
  readonly segments: readonly string[]
  readonly byMethod: Map<string, Route>
  /** The Allow header: every method that is served, GET with HEAD. */
  allow: string
}

/** no-route: nothing has this path. wrong-method: `allow` names those that it has. */
export type Match =
  | { readonly kind: 'route'; readonly route: Route; readonly rawNames: readonly string[] }
  | { readonly kind: 'wrong-method'; readonly allow: string }
  | { readonly kind: 'no-route' }

const NO_ROUTE: Match = { kind: 'no-route' }

const segmentsOf = (path: string): string[] => path.split('/').slice(1)

export class Router {
  /** By number of segments. */
  readonly #places = new Map<number, Place[]>()

  constructor(routes: readonly Route[]) {
    for (const route of routes) {
      const place = this.#placeOf(segmentsOf(route.pattern))
      assert(!place.byMethod.has(route.method), 'a route stands twice in the table')
      place.byMethod.set(route.method, route)
      if (route.method === 'GET') place.byMethod.set('HEAD', route)
      place.allow = [...place.byMethod.keys()].sort().join(', ')
    }
  }

  #placeOf(segments: readonly string[]): Place {
    const places = this.#places.get(segments.length) ?? []
    this.#places.set(segments.length, places)
    const known = places.find(place => place.segments.join('/') === segments.join('/'))
    if (known !== undefined) return known
    const place: Place = { segments, byMethod: new Map(), allow: '' }
    places.push(place)
    return place
  }

  match(method: string, path: string): Match {
    const segments = segmentsOf(path)
    for (const place of this.#places.get(segments.length) ?? []) {
      const rawNames: string[] = []
      const isHere = place.segments.every((expected, i) => {
        const actual = segments[i] ?? ''
        if (!expected.startsWith(':')) return expected === actual
        rawNames.push(actual)
        return actual !== ''
      })
      if (!isHere) continue
      const route = place.byMethod.get(method)
      return route === undefined ? { kind: 'wrong-method', allow: place.allow } : { kind: 'route', route, rawNames }
    }
    return NO_ROUTE
  }
}
