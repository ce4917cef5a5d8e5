/**
 * `millrace key …`: create, list, revoke, over the HTTP API; and create on a stopped broker, for whoever is locked out.
 * A secret is printed once, to stdout, by the command that made it.
 */
import type { Command } from 'commander'
import { createKey, listKeys, revokeKey, type KeyFields, type KeyRule } from '../client/http/key-calls.ts'
import { grantActions } from '../model/principal.ts'
import {
  addClientOptions,
  addExamples,
  openClient,
  optionsOf,
  repeatableOption,
  requiredText,
  smallWholeOf,
  textOf,
  u32,
  wordsOf,
  type OptionTexts
} from './common-options.ts'
import { formatCreatedKey, formatKeys } from './format-key.ts'
import { exitCodes, print, UsageError, type CliIo, type ExitCode } from './io.ts'

/** Adds the command group to the program. @param finish hears the exit code of what runs on a stopped broker. */
export function addKeyCommands(program: Command, io: CliIo, finish: (code: ExitCode) => void): void {
  const key = program.command('key').description('create, list and revoke API keys')
  addCreate(key, io, finish)
  addList(key, io)
  addRevoke(key, io)
}

function addCreate(key: Command, io: CliIo, finish: (code: ExitCode) => void): void {
  const command = key
    .command('create')
    .description('create a key; its secret is printed once and kept nowhere')
    .option('--name <name>', 'what people call it (required)')
    .addOption(repeatableOption('--acl <action:prefix>', `a rule: ${grantActions.join(', ')} on topics; * is all`))
    .option('--produce-bytes-per-sec <bytes>', 'budget for produce; 0 or left out: unlimited')
    .option('--consume-bytes-per-sec <bytes>', 'budget for consume; 0 or left out: unlimited')
    .option('--data-dir <path>', "write it into a stopped broker's data directory instead of asking a broker")
    .addHelpText(
      'after',
      '\nA rule covers the topic of that name and those that go on behind a dot, dash or underscore: orders covers orders\n' +
        'and orders.eu, not ordersecret. admin on * may do everything; on a prefix it is worth write.'
    )
  addExamples(addClientOptions(command), [
    'millrace key create --name orders-writer --acl write:orders --auth-file admin.key',
    'millrace key create --name shop --acl write:orders --auth-file admin.key | tail -n 1 > shop.key',
    "millrace key create --name operator --acl 'admin:*' --data-dir /var/lib/millrace"
  ])
  command.action(async (_, command: Command) => {
    const options = optionsOf(command)
    const fields = fieldsOf(options)
    if (textOf(options['dataDir']) !== null) {
      const { runKeyCreate } = await import('./offline/key-create.ts')
      finish(await runKeyCreate(fields, options, io))
      return
    }
    const answer = await createKey(openClient(options, io), fields)
    const text = options['json'] === true ? `${answer.text}\n` : formatCreatedKey(answer.body.key, answer.body.secret)
    await print(io.stdout, text)
    finish(exitCodes.ok)
  })
}

function fieldsOf(options: OptionTexts): KeyFields {
  const quota = (name: string, flag: string): number | null => smallWholeOf(options[name], flag, u32) || null
  return {
    name: requiredText(options, 'name', '--name'),
    acls: wordsOf(options['acl']).map(ruleOf),
    produce_bytes_per_sec: quota('produceBytesPerSec', '--produce-bytes-per-sec'),
    consume_bytes_per_sec: quota('consumeBytesPerSec', '--consume-bytes-per-sec')
  }
}

function ruleOf(word: string): KeyRule {
  const [action = '', prefix = ''] = word.split(':', 2)
  if (grantActions.some(known => known === action) && prefix !== '') return { action, topic_prefix: prefix }
  const examples = grantActions.map(known => `${known}:orders`).join(', ')
  throw new UsageError(`--acl '${word}' is no rule, such as ${examples}; with * in place of a topic it is for all`)
}

function addList(key: Command, io: CliIo): void {
  const command = key.command('list').description('list all keys, the revoked ones too; never a secret')
  addExamples(addClientOptions(command), ['millrace key list', 'millrace key list --json'])
  command.action(async (_, command: Command) => {
    const options = optionsOf(command)
    const answer = await listKeys(openClient(options, io))
    const lines = formatKeys(answer.body.keys)
    const text = lines.length === 0 ? '(no keys)' : lines.join('\n')
    await print(io.stdout, `${options['json'] === true ? answer.text : text}\n`)
  })
}

function addRevoke(key: Command, io: CliIo): void {
  const command = key
    .command('revoke')
    .description('revoke a key for good: it stops working at once')
    .argument('[id]', 'the key id, if not given with --id')
    .option('--id <id>', 'the key id, as key list shows it')
    .addHelpText('after', '\nThe answer has no body: --json prints nothing.')
  addExamples(addClientOptions(command), [
    'millrace key revoke key_0123456789ab',
    'millrace key revoke --id key_0123456789ab'
  ])
  command.action(async (word: string | undefined, _, command: Command) => {
    const options = optionsOf(command)
    if (word !== undefined && textOf(options['id']) !== null) throw new UsageError('the id is given twice')
    const id = requiredText(word === undefined ? options : { id: word }, 'id', '--id')
    await revokeKey(openClient(options, io), id)
    if (options['json'] !== true) await print(io.stdout, `revoked key '${id}'\n`)
  })
}
