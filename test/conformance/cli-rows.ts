/**
 * Section 14, the command line: the rows, a session from the first to the last. Where the specification gives a text, it
 * is held exactly; where it only says what is shown, that is looked for.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { run, type CliStage } from './cli-stage.ts'
import type { Row } from './row.ts'

/** A command, and what it prints. Exits with 0 and says nothing on stderr. */
function prints(line: string, fact: string, sent: string, stdout: string | RegExp): Row<CliStage> {
  return {
    line,
    fact,
    sent,
    expected: String(stdout).trim(),
    async check(stage) {
      const outcome = await run(stage, sent)
      assert.deepEqual([outcome.code, outcome.stderr], [0, ''])
      if (typeof stdout === 'string') assert.equal(outcome.stdout, stdout)
      else assert.match(outcome.stdout, stdout)
    }
  }
}

/** A command that fails: nothing on stdout, and what stderr says. */
function fails(line: string, fact: string, sent: string, stderr: RegExp): Row<CliStage> {
  return {
    line,
    fact,
    sent,
    expected: `non-zero exit, ${stderr}`,
    async check(stage) {
      const outcome = await run(stage, sent)
      assert.notEqual(outcome.code, 0)
      assert.equal(outcome.stdout, '')
      assert.match(outcome.stderr, stderr)
    }
  }
}

const NAMED = '`topic list` / `describe --name` / `show-config --name` / `delete --name`'
const GROUP = '`group show/join/heartbeat/leave/assignment`'
const KEY = '`key create/list/revoke`'
const PRODUCER = '`producer list/revoke --id`, `reset-offsets --topic`'
const SCHEMA = '`schema register/get/list/latest`'
const FLAGS_OF_TOPIC =
  '`--name` `--partitions`(1) `--retention-ms` `--retention-bytes` `--cleanup-policy` `--segment-bytes` `--tombstone-retention-ms`'

const topics: readonly Row<CliStage>[] = [
  prints(
    '`topic create`',
    "`created topic 'orders' with 3 partition(s)`",
    'topic create --name orders --partitions 3',
    "created topic 'orders' with 3 partition(s)\n"
  ),
  prints('`topic create`', '`--partitions`(1)', 'topic create --name one', "created topic 'one' with 1 partition(s)\n"),
  prints(
    '`topic create`',
    FLAGS_OF_TOPIC,
    'topic create --name all --retention-ms 86400000 --retention-bytes 1073741824 --cleanup-policy compact --segment-bytes 1048576 --tombstone-retention-ms 5000',
    "created topic 'all' with 1 partition(s)\n"
  ),
  prints(
    '`topic alter`',
    'config dump',
    'topic alter --name all --retention-ms 3600000 --retention-bytes 1000000 --cleanup-policy delete --segment-bytes 2097152 --tombstone-retention-ms 6000',
    /^(?=[^]*retention_ms=3600000\n)(?=[^]*retention_bytes=1000000\n)(?=[^]*cleanup_policy=delete\n)(?=[^]*segment_bytes=2097152\n)(?=[^]*tombstone_retention_ms=6000\n)/
  ),
  prints(NAMED, 'names', 'topic list', 'all\ncold\none\norders\n'),
  prints(
    NAMED,
    'per-partition lines',
    'topic describe --name orders',
    /(^|\n)partition=0 [^\n]*\n(partition=1|[^]*\npartition=1) [^]*partition=2 [^\n]*\n$/
  ),
  prints(
    NAMED,
    '`show-config --name`',
    'topic show-config --name all',
    /^(?=[^]*retention_ms=3600000\n)[^]*cleanup_policy=delete\n/
  ),
  prints(NAMED, "`deleted topic '…'`", 'topic delete --name one', "deleted topic 'one'\n")
]

const records: readonly Row<CliStage>[] = [
  prints(
    '`produce`',
    '`partition=0 offset=57`',
    'produce --topic orders --key user-1 --value checkout',
    /^partition=\d offset=0\n$/
  ),
  prints('`produce`', '`--partition`', 'produce --topic orders --partition 1 --value b', 'partition=1 offset=0\n'),
  prints(
    '`produce`',
    '`--producer-id` `--sequence`',
    'produce --topic orders --partition 0 --value a --producer-id p --sequence 0',
    'partition=0 offset=0\n'
  ),
  prints(
    '`produce`',
    '` (duplicate)`',
    'produce --topic orders --partition 0 --value a --producer-id p --sequence 0',
    'partition=0 offset=0 (duplicate)\n'
  ),
  prints(
    '`produce`',
    '`--from-file`',
    'produce --topic orders --partition 0 --producer-id p --sequence 1 --from-file lines.txt',
    'partition=0 offset=1\npartition=0 offset=2\npartition=0 offset=3\n'
  ),
  fails('`produce`', 'exclusive', 'produce --topic orders --value a --from-file lines.txt', /--value.*--from-file/),
  prints(
    '`--from-file`',
    'sequences count up from `--sequence` per *line*',
    'produce --topic orders --partition 0 --producer-id p --sequence 3 --value last',
    'partition=0 offset=3 (duplicate)\n'
  ),
  fails(
    '`--from-file`',
    '`--producer-id` without `--sequence` is an error',
    'produce --topic orders --partition 0 --producer-id p --value a',
    /--producer-id.*--sequence/
  ),
  prints(
    '`consume`',
    '`offset=0 key=alice value=…`',
    'consume --topic orders --partition 2 --offset 0',
    'offset=0 key=user-1 value=checkout\n-- next_offset=1 high_watermark=1 (1 record(s))\n'
  ),
  prints(
    '`consume`',
    '`--max`(100)',
    'consume --topic orders --partition 0 --offset 0 --max 1',
    'offset=0 value=a\n-- next_offset=1 high_watermark=4 (1 record(s))\n'
  ),
  prints('`commit`', '`committed`', 'commit --group g --topic orders --partition 0 --offset 3', 'committed\n'),
  prints(
    '`consume`',
    '(`--offset` | `--group`, exclusive)',
    'consume --topic orders --partition 0 --group g',
    'offset=3 value=last\n-- next_offset=4 high_watermark=4 (1 record(s))\n'
  ),
  fails(
    '`consume`',
    'exclusive',
    'consume --topic orders --partition 0 --group g --offset 0',
    /--(offset|group).*--(offset|group)/
  ),
  {
    line: '`--from-file`',
    fact: 'each non-empty line is one value, verbatim',
    sent: 'lines.txt as it was produced above',
    expected: 'three values, their blanks kept',
    async check({ admin }) {
      const read = await admin.api.consume('orders', 0, 'offset=1&max_records=3')
      assert.deepEqual(
        read.records.map(({ value }) => value),
        ['{"a": 1}', '  two words  ', 'last']
      )
    }
  }
]

const groups: readonly Row<CliStage>[] = [
  prints(GROUP, 'group show', 'group show --name g', /orders[^\n]*\b0\b[^\n]*\b3\b/),
  prints(
    GROUP,
    '`--topic` (repeat)',
    'group join --name g --topic orders --topic cold --member-id me',
    /me[^]*generation[^]*1[^]*(orders[^]*cold|cold[^]*orders)/
  ),
  prints(GROUP, '`--generation`', 'group heartbeat --name g --member-id me --generation 1', /\bok\b/),
  prints(GROUP, 'heartbeat', 'group heartbeat --name g --member-id stranger --generation 1', /\bunknown_member\b/),
  prints(GROUP, 'assignment', 'group assignment --name g --member-id me', /(orders[^]*cold|cold[^]*orders)/),
  prints(GROUP, 'leave', 'group leave --name g --member-id me', /\S/),
  fails(GROUP, 'assignment', 'group assignment --name g --member-id me', / 404\b/)
]

const administration: readonly Row<CliStage>[] = [
  prints(
    KEY,
    'secret once, under a line starting `SECRET`',
    'key create --name k --acl read:orders --acl write:cold --produce-bytes-per-sec 10 --consume-bytes-per-sec 20',
    /(^|\n)SECRET[^\n]*\nesk_[A-Za-z0-9_-]{43}\n/
  ),
  {
    line: KEY,
    fact: 'revoked keys marked `[revoked]`',
    sent: 'key revoke --id of the key above, then key list',
    expected: 'its line, and no other, ends with [revoked]; no secret',
    async check(stage) {
      const lineOf = async (): Promise<string> => {
        const { stdout } = await run(stage, 'key list')
        assert.doesNotMatch(stdout, /esk_/)
        assert.equal(stdout.match(/\[revoked\]/g)?.length ?? 0, stdout.match(/k'.*\[revoked\]\n/)?.length ?? 0)
        return stdout.split('\n').find(line => line.includes('read:orders')) ?? ''
      }
      const before = await lineOf()
      const revoked = await run(stage, `key revoke --id ${/key_\w+/.exec(before)?.[0]}`)
      assert.deepEqual([revoked.code, revoked.stderr], [0, ''])
      assert.deepEqual([/\[revoked\]$/.test(before), /\[revoked\]$/.test(await lineOf())], [false, true])
    }
  },
  prints(PRODUCER, 'producer list', 'producer list', /\bp\b[^\n]*orders[^\n]*\b3\b[^\n]*\b3\b/),
  prints(PRODUCER, '`producer list/revoke --id`', 'producer revoke --id p', /\bp\b/),
  prints(
    PRODUCER,
    '`reset N entries across M group(s)`',
    'reset-offsets --topic orders',
    'reset 1 entries across 1 group(s)\n'
  ),
  prints(
    SCHEMA,
    '`id: 1`',
    'schema register --subject s --type json_schema --schema \'{"type": "object"}\'',
    'id: 1\n'
  ),
  prints(SCHEMA, '<file or inline JSON starting', 'schema register --subject f --schema schema.json', 'id: 2\n'),
  prints(SCHEMA, 'pretty JSON', 'schema get --id 1', /^\{\n {2}"[^]*"subject": "s"[^]*\n\}\n$/),
  prints(SCHEMA, 'schema register/get/list/latest', 'schema list', /^\[\n[^]*"subject": "s"[^]*\n\]\n$/),
  prints(SCHEMA, 'schema register/get/list/latest', 'schema latest --subject s', /^\{\n {2}"id": 1,\n[^]*\n\}\n$/),
  prints('`tiered list`', 'one base offset per line', 'tiered list --topic cold --partition 0', /^0\n(\d+\n)+$/)
]

/** A command that lists the topics, given its broker and key in these words and this environment. */
function listing(
  fact: string,
  words: (stage: CliStage) => string,
  env: (stage: CliStage) => Readonly<Record<string, string>>
): Row<CliStage> {
  return {
    line: 'Global: `--broker`/`ES_BROKER`',
    fact,
    sent: fact,
    expected: 'the names of the topics',
    async check(stage) {
      const outcome = await run({ ...stage, env: {} }, `topic list ${words(stage)}`, env(stage))
      assert.deepEqual(outcome, { code: 0, stdout: 'all\ncold\norders\n', stderr: '' })
    }
  }
}

const global: readonly Row<CliStage>[] = [
  listing(
    '`--broker`',
    ({ url, admin }) => `--broker ${url} --auth ${admin.secret}`,
    () => ({})
  ),
  listing(
    '`ES_BROKER`',
    () => '',
    ({ env }) => env
  ),
  listing(
    'trailing slash trimmed',
    ({ url }) => `--broker ${url}/`,
    ({ admin }) => ({ ES_AUTH: admin.secret })
  ),
  listing(
    '`ES_AUTH`',
    ({ url }) => `--broker ${url}`,
    ({ admin }) => ({ ES_AUTH: admin.secret })
  ),
  listing(
    '`--auth-file` (first line, trimmed; wins over `--auth`)',
    ({ url, folder }) => `--broker ${url} --auth esk_wrong --auth-file ${join(folder, 'key.txt')}`,
    () => ({})
  ),
  {
    line: 'Global: `--broker`/`ES_BROKER`',
    fact: '(default `http://127.0.0.1:9000`',
    sent: 'topic list --help',
    expected: 'the default in the help',
    async check(stage) {
      assert.match((await run(stage, 'topic list --help')).stdout, /--broker[^]*http:\/\/127\.0\.0\.1:9000/)
    }
  },
  fails(
    'Failure: non-zero exit',
    'stderr shows method/url, status and body',
    'topic describe --name none',
    /GET http:\S+\/topics\/none .*404.*no topic named 'none'/
  ),
  fails(
    'Failure: non-zero exit',
    'non-zero exit',
    'topic create --name orders',
    /POST http:\S+\/topics .*409.*already exists/
  ),
  fails('Failure: non-zero exit', 'status', 'topic list --auth esk_wrong', /GET http:\S+\/topics .*401/)
]

/** In this order. */
export const cliRows: readonly Row<CliStage>[] = [...topics, ...records, ...groups, ...administration, ...global]
