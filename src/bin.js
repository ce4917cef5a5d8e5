#!/usr/bin/env node
/**
 * The command `millrace`. Plain JavaScript that Node 20 parses: where the Node that runs it is older than 24, it runs
 * itself again with the Node that was installed beside it, passing arguments, terminal, signals and exit code through.
 * A channel between the two tells the second that the first is gone, also by SIGKILL: no broker stays behind alone.
 * Owns nothing else; dist/src/main.js is the program.
 */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import module, { createRequire } from 'node:module'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const NODE_MAJOR_MIN = 24
/** Set for the second process only: others may give this one a channel for reasons of their own. */
const LAUNCHED = 'MILLRACE_LAUNCHED'

/** One line, one way to help. */
function fail(message) {
  process.stderr.write(`millrace: ${message}\n`)
  process.exit(1)
}

/** Path of the node binary of the optional dependency for this machine, or null. */
function findBundledNode() {
  const name = `node-${process.platform}-${process.arch}`
  try {
    const binary = join(dirname(createRequire(import.meta.url).resolve(`${name}/package.json`)), 'bin', 'node')
    return existsSync(binary) ? binary : null
  } catch (error) {
    // Not installed: the package exists for linux on x64 and arm64 only, and may have been left out.
    if (error.code === 'MODULE_NOT_FOUND') return null
    throw error
  }
}

function runAgain(node) {
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR2']
  // Heard before the child exists: a signal that ended only this process would leave the broker behind.
  const early = []
  let child = null
  // Ctrl-C at a terminal reaches both processes; serve takes the echo for what it is.
  const forward = signal => (child === null ? early.push(signal) : child.kill(signal))
  for (const signal of signals) process.on(signal, forward)
  child = spawn(node, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, [LAUNCHED]: '1' }
  })
  for (const signal of early) child.kill(signal)
  child.on('error', error => fail(`cannot run ${node}: ${error.message}`))
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code)
    // Ended by a signal: end the same way, so that the caller sees the same; 128 + n if this one cannot be raised.
    for (const name of signals) process.off(name, forward)
    process.exitCode = 128 + constants.signals[signal]
    process.kill(process.pid, signal)
  })
}

/** In the second process: the end of the first is a SIGTERM, which stops a broker cleanly and ends anything else. */
function endWithLauncher() {
  if (process.env[LAUNCHED] === undefined) return
  // Not for processes that this one starts; and the settings refuse variables that they do not know.
  delete process.env[LAUNCHED]
  // Never had a channel: whoever set the variable was no launcher.
  if (process.send === undefined) return
  const end = () => process.kill(process.pid, 'SIGTERM')
  if (!process.connected) return end()
  process.on('disconnect', end)
  process.channel.unref()
}

async function run() {
  endWithLauncher()
  module.enableCompileCache()
  const main = new URL('../dist/src/main.js', import.meta.url)
  if (!existsSync(main)) fail('this checkout is not built yet: run `npm run build` first')
  await import(main.href)
}

if (Number.parseInt(process.versions.node, 10) >= NODE_MAJOR_MIN) {
  await run()
} else {
  const node = findBundledNode()
  if (node === null) {
    fail(`needs Node ${NODE_MAJOR_MIN} or newer, this is ${process.versions.node}: install it from https://nodejs.org`)
  } else {
    runAgain(node)
  }
}
