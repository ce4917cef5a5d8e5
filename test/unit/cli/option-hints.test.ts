/** What people hear who write the options of other tools. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { run } from './terminal.ts'

test('an option of other tools is refused with what to write here, by the commands that it means something to', async () => {
  const cases: [string, RegExp][] = [
    ['topic alter x --partitions 3', /'--partitions': 'millrace topic add-partitions' gives a topic more of them\n$/],
    [
      'topic create x --config retention.ms=1',
      /'--config': each setting is an option of its own, as --retention-ms 7d/
    ],
    ['topic create x --config=retention.ms=1', /'--config=retention\.ms=1': each setting is an option of its own/],
    ['topic alter x --add-config a=b', /'--add-config': each setting is an option of its own/],
    ['topic alter x --delete-config a', /'--delete-config': a retention of -1 is for ever/],
    ['topic create x --replication-factor 1', /'--replication-factor': leave it out/],
    ['topic list --bootstrap-server x:9092', /'--bootstrap-server': the broker's HTTP address is named by --broker/],
    ['produce --broker-list x:9092', /'--broker-list': the broker's HTTP address is named by --broker/],
    ['consume x --from-beginning', /'--from-beginning': leave it out: it begins with the first record\n$/],
    ['tail x --from-beginning', /'--from-beginning': write --from earliest\n$/],
    ['tail x --max-messages 3', /'--max-messages': write --max\n$/],
    ['topic list --config a=b', /'--config'\n$/],
    ['serve --port 9092', / --port: each listener has its host and port: --bind for HTTP, --bind-kafka for/],
    ['serve --advertised.listeners=h:1', / --advertised\.listeners: .*--bind-kafka 0\.0\.0\.0:9092=broker/],
    ['serve --log.dirs /x', / --log\.dirs: write --data-dir\n$/],
    ['serve --override a=b', / --override: each setting is a flag of its own/],
    ['serve --num-partitions 3', / --num-partitions: that is of each topic: 'millrace topic create --help'\n$/],
    ['config explain --replication-factor 1', / --replication-factor: that is of each topic/],
    ['config explain --bootstrap-server x:1', / --bootstrap-server: this is the broker itself/]
  ]
  for (const [words, message] of cases) {
    const { code, stdout, stderr } = await run(words.split(' '))
    assert.deepEqual([code, stdout], [2, ''], words)
    assert.match(stderr, message)
    assert.match(stderr, /^millrace: unknown (option|flag) [^\n]*\n$/)
  }
})
