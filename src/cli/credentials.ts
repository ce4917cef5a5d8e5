/** The key of a client command: where its secret comes from. It is never printed, in no message. */
import { readFileSync } from 'node:fs'
import { Option, type Command } from 'commander'
import { UsageError, type CliIo } from './io.ts'

/** What a header can carry. Of a broker's own secrets all characters are among these. */
const secretPattern = /^[\x21-\x7e]+$/

/** Adds --auth and --auth-file. */
export function addCredentialOptions(command: Command): Command {
  return command
    .addOption(new Option('--auth <secret>', 'secret of an API key (default: MILLRACE_KEY or ES_AUTH)'))
    .addOption(new Option('--auth-file <path>', 'file whose first line is the secret; wins over --auth'))
}

/** The secret that the options or the environment name; null: none. @throws UsageError */
export function readSecret(
  { auth, authFile }: { readonly auth: string | null; readonly authFile: string | null },
  io: CliIo
): string | null {
  if (authFile !== null) return checked(firstLineOf(authFile), `--auth-file ${authFile}`)
  if (auth !== null) return checked(auth, '--auth')
  for (const name of ['MILLRACE_KEY', 'ES_AUTH']) {
    const secret = io.env[name] ?? ''
    if (secret !== '') return checked(secret, name)
  }
  return null
}

function firstLineOf(path: string): string {
  try {
    return (readFileSync(path, 'utf8').split('\n', 1)[0] ?? '').trim()
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error)) throw error
    throw new UsageError(`--auth-file ${path} cannot be read: ${String(error.code)}`)
  }
}

function checked(secret: string, from: string): string {
  if (secretPattern.test(secret)) return secret
  throw new UsageError(`${from} holds no secret: it is one word, such as esk_ and 43 characters`)
}
