/**
 * Two charts as inline SVG, drawn from numbers alone: throughput over time, and percentiles on a logarithmic scale.
 * Pure. Colours come from the page's style sheet, so that both themes read well. All text passes escapeText.
 */
import { percentileFields, percentileNames } from '../latency.ts'
import type { LatencySummary } from '../latency.ts'
import { SLICE_MS } from '../meter.ts'
import { formatCount, formatMs } from '../../src/base/amounts.ts'

const WIDTH = 640
const HEIGHT = 220
const LEFT = 64
const RIGHT = 12
const TOP = 12
const BOTTOM = 34

/** Text made safe for element content and quoted attributes. */
export function escapeText(text: string): string {
  return text.replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)
}

/** The smallest of 1, 2, 5 × 10^n that is not below `value`. */
export function niceCeiling(value: number): number {
  if (!(value > 0)) return 1
  const power = 10 ** Math.floor(Math.log10(value))
  const step = [1, 2, 5, 10].find(factor => factor * power >= value * (1 - 1e-9)) ?? 10
  return step * power
}

/** One line per round: records per second in each 100 ms. */
export function throughputChart(title: string, rounds: readonly (readonly number[])[]): string {
  const slices = Math.max(2, ...rounds.map(round => round.length))
  const top = niceCeiling(Math.max(0, ...rounds.flat()))
  const x = (slice: number): number => LEFT + (slice / (slices - 1)) * (WIDTH - LEFT - RIGHT)
  const y = (value: number): number => TOP + (1 - value / top) * (HEIGHT - TOP - BOTTOM)
  const parts = [0, top / 2, top].map(value => gridLine(y(value), formatCount(value)))
  for (const seconds of axisSeconds(slices)) {
    const at = x(Math.min(slices - 1, (seconds * 1000) / SLICE_MS))
    parts.push(`<text class="axis" x="${round1(at)}" y="${HEIGHT - 12}" text-anchor="middle">${seconds} s</text>`)
  }
  rounds.forEach((round, index) => {
    if (round.length === 0) return
    const points = round.map((value, slice) => `${round1(x(slice))},${round1(y(value))}`).join(' ')
    parts.push(`<polyline class="line c${index % 5}" points="${points}"><title>round ${index + 1}</title></polyline>`)
  })
  return svg(`${title}: records per second over time, one line per round`, parts)
}

/** One row of dots per case, from p50 to max, joined by a line. */
export function percentileChart(rows: readonly { readonly name: string; readonly latency: LatencySummary }[]): string {
  const values = rows.flatMap(row => percentileFields.map(field => row.latency[field])).filter(value => value > 0)
  if (values.length === 0) return ''
  const low = Math.floor(Math.log10(Math.min(...values)))
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values))))
  const left = 200
  const height = TOP + rows.length * 26 + BOTTOM
  const x = (ms: number): number =>
    left + ((Math.log10(Math.max(ms, 10 ** low)) - low) / (high - low)) * (WIDTH - left - RIGHT - 20)
  const parts: string[] = []
  for (let power = low; power <= high; power++) {
    const at = round1(x(10 ** power))
    parts.push(`<line class="grid" x1="${at}" x2="${at}" y1="${TOP}" y2="${height - BOTTOM}"/>`)
    parts.push(`<text class="axis" x="${at}" y="${height - 12}" text-anchor="middle">${10 ** power} ms</text>`)
  }
  rows.forEach((row, index) => {
    const y = TOP + 14 + index * 26
    const ends = `x1="${round1(x(row.latency.p50Ms))}" x2="${round1(x(row.latency.maxMs))}"`
    parts.push(`<text class="label" x="${left - 8}" y="${y + 4}" text-anchor="end">${escapeText(row.name)}</text>`)
    parts.push(`<line class="range" ${ends} y1="${y}" y2="${y}"/>`)
    percentileFields.forEach((field, dot) => {
      const hint = `${percentileNames[field]} ${formatMs(row.latency[field])} ms`
      parts.push(
        `<circle class="dot c${dot}" cx="${round1(x(row.latency[field]))}" cy="${y}" r="4"><title>${hint}</title></circle>`
      )
    })
  })
  return svg('Latency percentiles of each case on a logarithmic scale', parts, height)
}

function axisSeconds(slices: number): number[] {
  const end = ((slices - 1) * SLICE_MS) / 1000
  const step = niceCeiling(end / 5)
  return Array.from({ length: Math.floor(end / step + 1e-9) + 1 }, (_, index) => Number((index * step).toFixed(3)))
}

function gridLine(y: number, label: string): string {
  return (
    `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${round1(y)}" y2="${round1(y)}"/>` +
    `<text class="axis" x="${LEFT - 6}" y="${round1(y + 4)}" text-anchor="end">${label}</text>`
  )
}

function svg(label: string, parts: readonly string[], height = HEIGHT): string {
  const size = `viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}"`
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img" aria-label="${escapeText(label)}">${parts.join('')}</svg>`
}

function round1(value: number): number {
  return Math.round(value * 10) / 10
}
