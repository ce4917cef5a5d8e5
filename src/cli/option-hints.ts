/**
 * What people write who know other tools, and what to write here instead: said where such an option is unknown to the
 * command that it was given to. Pure.
 */
interface OptionHint {
  /** The commands that it is for, `serve` with `config explain`, which takes the same; null: all. */
  readonly commands: readonly string[] | null
  readonly options: readonly string[]
  readonly hint: string
}

const ofServe = ['serve']
const ofTopics = ['topic create', 'topic alter']

const optionHints: readonly OptionHint[] = [
  {
    commands: ['topic alter'],
    options: ['--partitions'],
    hint: "'millrace topic add-partitions' gives a topic more of them"
  },
  {
    commands: ofTopics,
    options: ['--config', '--add-config'],
    hint: 'each setting is an option of its own, as --retention-ms 7d or --cleanup-policy compact; --help has all'
  },
  {
    commands: ofTopics,
    options: ['--delete-config'],
    hint: "a retention of -1 is for ever, --segment-ms -1 and --max-message-bytes -1 are the broker's; --help has all"
  },
  { commands: ofTopics, options: ['--replication-factor'], hint: 'leave it out: one broker has all of a topic' },
  { commands: ['consume'], options: ['--from-beginning'], hint: 'leave it out: it begins with the first record' },
  { commands: ['tail'], options: ['--from-beginning'], hint: 'write --from earliest' },
  { commands: ['consume', 'tail'], options: ['--max-messages'], hint: 'write --max' },
  {
    commands: ofServe,
    options: ['--port', '--host', '--listen', '--listeners', '--addr', '--address'],
    hint: 'each listener has its host and port: --bind for HTTP, --bind-kafka for the clients of Kafka'
  },
  {
    commands: ofServe,
    options: ['--advertised-listeners', '--advertised.listeners', '--advertise-kafka-addr'],
    hint: 'write it behind the address that is listened on, as --bind-kafka 0.0.0.0:9092=broker.example:9092'
  },
  {
    commands: ofServe,
    options: ['--log-dirs', '--log.dirs', '--log-dir', '--log.dir', '--store_dir', '--store-dir'],
    hint: 'write --data-dir'
  },
  {
    commands: ofServe,
    options: ['--override', '--properties'],
    hint: 'each setting is a flag of its own, or a key of the file that --config names; --help has all'
  },
  {
    commands: ofServe,
    options: ['--partitions', '--num-partitions', '--replication-factor', '--retention-ms', '--retention-bytes'],
    hint: "that is of each topic: 'millrace topic create --help'"
  },
  {
    commands: ofServe,
    options: ['--bootstrap-server', '--broker-list', '--broker'],
    hint: 'this is the broker itself; where it listens is said by --bind and --bind-kafka'
  },
  {
    commands: null,
    options: ['--bootstrap-server', '--broker-list'],
    hint: "the broker's HTTP address is named by --broker, as http://127.0.0.1:9000"
  }
]

/** What to write instead. @param command its words behind the program's name. @returns null if nothing is known. */
export function optionHint(command: string, option: string): string | null {
  const found = optionHints.find(
    ({ commands, options }) => options.includes(option) && (commands?.includes(command) ?? true)
  )
  return found?.hint ?? null
}
