"""confluent-kafka, over librdkafka. What it calls an error while a check goes on fails the check."""

import logging
from functools import cache

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
)

from groups import group_checks
from stage import LARGE_VALUE, VALUE, WAIT_SECONDS, check_equal, complaints, run, wait_for

logger = logging.getLogger('librdkafka')


def fail(error):
    raise KafkaException(error)


def options(stage):
    return {'bootstrap.servers': stage.open, 'error_cb': fail, 'logger': logger}


@cache
def admin_of(stage):
    """One for the whole check: a client that nobody holds takes its requests with it."""
    return AdminClient(options(stage))


def result(futures):
    """Of a call about one thing: raises what it failed with."""
    [future] = futures.values()
    return future.result(WAIT_SECONDS)


def partition_count(stage, topic):
    return len(admin_of(stage).list_topics(topic, WAIT_SECONDS).topics[topic].partitions)


def connect(stage):
    cluster = admin_of(stage).describe_cluster().result(WAIT_SECONDS)
    check_equal([node.id for node in cluster.nodes], [cluster.controller.id])


def make_topic(stage, topic, partitions=1, config=None):
    result(admin_of(stage).create_topics([NewTopic(topic, partitions, 1, config=config or {})]))


def three_records(stage):
    make_topic(stage, stage.topic)
    for value in ['one', 'two', 'three']:
        stage.write(stage.topic, value)
    return stage.topic


def create_topic(stage):
    make_topic(stage, stage.topic, 3, {'retention.ms': '60000'})
    check_equal(partition_count(stage, stage.topic), 3)
    check_equal(stage.describe(stage.topic)['config']['retention_ms'], 60000)
    result(admin_of(stage).delete_topics([stage.topic]))
    check_equal(stage.topic in admin_of(stage).list_topics(timeout=WAIT_SECONDS).topics, False)


def create_partitions(stage):
    make_topic(stage, stage.topic)
    result(admin_of(stage).create_partitions([NewPartitions(stage.topic, 3)]))
    check_equal(partition_count(stage, stage.topic), 3)


def read(stage, topic, offset, count):
    """So many messages from an offset on."""
    consumer = Consumer({**options(stage), 'group.id': 'none', 'enable.auto.commit': False})
    consumer.assign([TopicPartition(topic, 0, offset)])
    messages = []
    wait_for(f'{count} records', lambda: len(messages) >= count, lambda: messages.extend(poll(consumer)))
    consumer.close()
    return messages


def poll(consumer):
    message = consumer.poll(0.1)
    if message is None:
        return []
    if message.error() is not None:
        raise KafkaException(message.error())
    return [message]


def written(more, value=VALUE):
    """Writes with these options, reads, and has the broker read it."""

    def check(stage):
        make_topic(stage, stage.topic)
        reports = []
        producer = Producer({**options(stage), **more})
        headers = [('h', b'x'), ('none', None)]
        producer.produce(stage.topic, value, 'key', headers=headers, on_delivery=lambda *told: reports.append(told))
        producer.flush(WAIT_SECONDS)
        [[error, report]] = reports
        check_equal([error, report.offset()], [None, 0])
        [message] = read(stage, stage.topic, 0, 1)
        check_equal([message.key(), message.value().decode(), message.headers()], [b'key', value, headers])
        check_equal([record['value'] for record in stage.records(stage.topic)], [value])

    return check


def read_from_the_middle(stage):
    messages = read(stage, three_records(stage), 1, 2)
    check_equal([message.value() for message in messages], [b'two', b'three'])


def find_by_time(stage):
    topic = three_records(stage)
    time = stage.records(topic)[0]['timestamp_ms']
    consumer = Consumer({**options(stage), 'group.id': 'none'})

    def offset_at(time):
        [found] = consumer.offsets_for_times([TopicPartition(topic, 0, time)], WAIT_SECONDS)
        return found.offset

    # -1 stands for the end.
    check_equal([offset_at(time), offset_at(time + 3_600_000)], [0, -1])
    consumer.close()


class Member:
    def __init__(self, stage, topic, group, instance_id):
        quick = {'heartbeat.interval.ms': 100, 'session.timeout.ms': 10000, 'fetch.wait.max.ms': 100}
        reading = {'auto.offset.reset': 'earliest', 'enable.auto.commit': False}
        name = {} if instance_id is None else {'group.instance.id': instance_id}
        self.messages = []
        self.partitions = None
        self._consumer = Consumer({**options(stage), 'group.id': group, **quick, **reading, **name})
        self._consumer.subscribe([topic], on_assign=self._assigned, on_revoke=self._revoked)

    def _assigned(self, _, partitions):
        self.partitions = [partition.partition for partition in partitions]

    def _revoked(self, *_):
        self.partitions = None

    def poll(self):
        for message in poll(self._consumer):
            self.messages.append(f'{message.partition()}:{message.offset()}:{message.value().decode()}')

    def commit(self):
        self._consumer.commit(asynchronous=False)

    def stop(self):
        self._consumer.close()

    # One whose instance has a name does not leave when it is closed.
    vanish = stop


def delete_records(stage):
    topic = three_records(stage)
    deleted = result(admin_of(stage).delete_records([TopicPartition(topic, 0, 2)]))
    check_equal(deleted.low_watermark, 2)
    [partition] = stage.describe(topic)['partitions']
    check_equal([partition['start_offset'], partition['end_offset']], [2, 3])


def describe(stage):
    topic = three_records(stage)
    admin = admin_of(stage)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    check_equal(result(admin.describe_configs([resource]))['cleanup.policy'].value, 'delete')
    stage.call('POST', f'/groups/{topic}/commit', {'topic': topic, 'partition': 0, 'offset': 2})
    check_equal(result(admin.describe_consumer_groups([topic])).state.name, 'EMPTY')
    asked = [ConsumerGroupTopicPartitions(topic, [TopicPartition(topic, 0)])]
    [partition] = result(admin.list_consumer_group_offsets(asked)).topic_partitions
    check_equal(partition.offset, 2)


def change_configuration(stage):
    make_topic(stage, stage.topic)
    entry = ConfigEntry('retention.ms', '5000', incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, stage.topic, incremental_configs=[entry])
    result(admin_of(stage).incremental_alter_configs([resource]))
    check_equal(stage.describe(stage.topic)['config']['retention_ms'], 5000)


def login(mechanism):
    def check(stage):
        sasl = {'security.protocol': 'SASL_PLAINTEXT', 'sasl.mechanism': mechanism, 'sasl.username': stage.user}

        def client(password, on_error):
            address = {'bootstrap.servers': stage.guarded, 'error_cb': on_error, 'logger': logger}
            return AdminClient({**address, **sasl, 'sasl.password': password})

        # Other clients may have made some by now.
        check_equal(stage.topic in client(stage.password, fail).list_topics(timeout=WAIT_SECONDS).topics, False)
        errors = []
        refused = client('wrong', errors.append)
        wait_for('the refusal', lambda: len(errors) > 0, lambda: refused.poll(0.1))
        check_equal(errors[0].code(), KafkaError._AUTHENTICATION)
        complaints.forget()

    return check


run(
    {
        'connect': connect,
        'create topic': create_topic,
        'create partitions': create_partitions,
        'produce and fetch': written({}),
        'gzip': written({'compression.type': 'gzip'}),
        'snappy': written({'compression.type': 'snappy'}),
        'lz4': written({'compression.type': 'lz4'}),
        'zstd': written({'compression.type': 'zstd'}),
        'idempotent': written({'enable.idempotence': True}),
        'record of 1 MB': written({'message.max.bytes': 2_000_000}, LARGE_VALUE),
        'from a middle offset': read_from_the_middle,
        'by time': find_by_time,
        **group_checks(make_topic, Member),
        'delete records': delete_records,
        'describe': describe,
        'change configuration': change_configuration,
        'SASL PLAIN': login('PLAIN'),
        'SASL SCRAM-SHA-256': login('SCRAM-SHA-256'),
        'SASL SCRAM-SHA-512': login('SCRAM-SHA-512'),
    }
)
