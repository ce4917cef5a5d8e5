/** Looking into sorted lists by halving. Pure, any thread. */

/**
 * Index of the first element that is not before the wanted one; behind the last if all are.
 *
 * @param sorted those that are before it stand first.
 * @param isBefore gets what is wanted beside the element, so that who is called often needs no closure.
 */
export function placeIn<T, Wanted>(
  sorted: readonly T[],
  wanted: Wanted,
  isBefore: (element: T, wanted: Wanted) => boolean
): number {
  let start = 0
  let end = sorted.length
  while (start < end) {
    const middle = (start + end) >>> 1
    if (isBefore(sorted[middle] as T, wanted)) start = middle + 1
    else end = middle
  }
  return start
}
