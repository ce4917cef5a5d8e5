"""kafka-python: a client that is all Python. What it warns of while a check goes on fails the check."""

import logging
import threading

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.errors import KafkaTimeoutError

from groups import group_checks
from stage import LARGE_VALUE, VALUE, WAIT_SECONDS, check_equal, check_refused, complaints, run, wait_for


def admin_of(stage):
    return KafkaAdminClient(bootstrap_servers=stage.open)


def partition_count(admin, topic):
    [described] = admin.describe_topics([topic])
    return len(described['partitions'])


def connect(stage):
    with admin_of(stage) as admin:
        cluster = admin.describe_cluster()
    check_equal([broker['broker_id'] for broker in cluster['brokers']], [cluster['controller_id']])


def make_topic(stage, topic, partitions=1, configs=None):
    with admin_of(stage) as admin:
        options = {'num_partitions': partitions, 'replication_factor': 1, 'configs': configs or {}}
        admin.create_topics({topic: options})


def three_records(stage):
    make_topic(stage, stage.topic)
    for value in ['one', 'two', 'three']:
        stage.write(stage.topic, value)
    return stage.topic


def create_topic(stage):
    make_topic(stage, stage.topic, 3, {'retention.ms': '60000'})
    check_equal(stage.describe(stage.topic)['config']['retention_ms'], 60000)
    with admin_of(stage) as admin:
        check_equal(partition_count(admin, stage.topic), 3)
        admin.delete_topics([stage.topic])
        check_equal(stage.topic in admin.list_topics(), False)


def create_partitions(stage):
    make_topic(stage, stage.topic)
    with admin_of(stage) as admin:
        admin.create_partitions({stage.topic: 3})
        check_equal(partition_count(admin, stage.topic), 3)


def read(stage, topic, offset, count):
    """So many messages from an offset on."""
    consumer = KafkaConsumer(bootstrap_servers=stage.open, enable_auto_commit=False)
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek(partition, offset)
    messages = []
    wait_for(f'{count} records', lambda: len(messages) >= count, lambda: messages.extend(poll(consumer)))
    close(consumer)
    return messages


def poll(consumer, timeout_ms=100):
    return [message for messages in consumer.poll(timeout_ms).values() for message in messages]


def close(consumer):
    """It calls what it has not waited for a failure."""
    kept = list(complaints.texts)
    consumer.close()
    complaints.texts = kept


def written(more, value=VALUE):
    """Writes with these options, reads, and has the broker read it."""

    def check(stage):
        make_topic(stage, stage.topic)
        producer = KafkaProducer(bootstrap_servers=stage.open, **more)
        headers = [('h', b'x')]
        sent = producer.send(stage.topic, value.encode(), b'key', headers)
        check_equal(sent.get(WAIT_SECONDS).offset, 0)
        producer.close()
        [message] = read(stage, stage.topic, 0, 1)
        check_equal([message.key, message.value.decode(), list(message.headers)], [b'key', value, headers])
        check_equal([record['value'] for record in stage.records(stage.topic)], [value])

    return check


def read_from_the_middle(stage):
    messages = read(stage, three_records(stage), 1, 2)
    check_equal([message.value for message in messages], [b'two', b'three'])


def find_by_time(stage):
    topic = three_records(stage)
    time = stage.records(topic)[0]['timestamp_ms']
    partition = TopicPartition(topic, 0)
    consumer = KafkaConsumer(bootstrap_servers=stage.open, enable_auto_commit=False)
    found = consumer.offsets_for_times({partition: time})[partition]
    check_equal([found.offset, found.timestamp], [0, time])
    check_equal(consumer.offsets_for_times({partition: time + 3_600_000}), {partition: None})
    close(consumer)


class Member(ConsumerRebalanceListener):
    """Polls in a thread of its own: one that is not polled while it joins begins to join again."""

    def __init__(self, stage, topic, group, instance_id):
        self.messages = []
        self.partitions = None
        self._group = {'group_id': group, 'group_instance_id': instance_id}
        self._is_stopping = threading.Event()
        self._is_to_commit = False
        self._failure = None
        self._thread = threading.Thread(target=self._run, args=[stage, topic], daemon=True)
        self._thread.start()

    def _run(self, stage, topic):
        try:
            self._read(stage, topic)
        except Exception as error:
            self._failure = error

    def _read(self, stage, topic):
        quick = {'heartbeat_interval_ms': 100, 'session_timeout_ms': 10000, 'fetch_max_wait_ms': 100}
        reading = {'auto_offset_reset': 'earliest', 'enable_auto_commit': False}
        consumer = KafkaConsumer(bootstrap_servers=stage.open, **self._group, **quick, **reading)
        # As a leader it shares out what it knows, and may have joined before it knows anything.
        consumer.partitions_for_topic(topic)
        consumer.subscribe([topic], listener=self)
        while not self._is_stopping.is_set():
            for message in poll(consumer, 500):
                self.messages.append(f'{message.partition}:{message.offset}:{message.value.decode()}')
        if self._is_to_commit:
            consumer.commit()
        close(consumer)

    def on_partitions_assigned(self, assigned):
        self.partitions = [partition.partition for partition in assigned]

    def on_partitions_revoked(self, revoked):
        self.partitions = None

    def poll(self):
        """It polls by itself: this waits a moment."""
        self._thread.join(0.01)
        if self._failure is not None:
            raise self._failure

    def commit(self):
        self._is_to_commit = True

    def stop(self):
        self._is_stopping.set()
        self._thread.join(WAIT_SECONDS)
        self.poll()

    # One whose instance has a name does not leave when it is closed.
    vanish = stop


def delete_records(stage):
    topic = three_records(stage)
    with admin_of(stage) as admin:
        partition = TopicPartition(topic, 0)
        check_equal(admin.delete_records({partition: 2})[partition]['low_watermark'], 2)
    [described] = stage.describe(topic)['partitions']
    check_equal([described['start_offset'], described['end_offset']], [2, 3])


def describe(stage):
    topic = three_records(stage)
    stage.call('POST', f'/groups/{topic}/commit', {'topic': topic, 'partition': 0, 'offset': 2})
    with admin_of(stage) as admin:
        configs = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)], config_filter='all')
        check_equal(configs['topic'][topic]['cleanup.policy']['value'], 'delete')
        group = admin.describe_groups([topic])[topic]
        check_equal([group['error'], group['group_state']], [None, 'Empty'])
        check_equal(admin.list_group_offsets(topic)[topic][TopicPartition(topic, 0)].offset, 2)


def change_configuration(stage):
    make_topic(stage, stage.topic)
    with admin_of(stage) as admin:
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, stage.topic, {'retention.ms': '5000'})])
    check_equal(stage.describe(stage.topic)['config']['retention_ms'], 5000)


def login(mechanism):
    def check(stage):
        def client(password, **more):
            sasl = {'sasl_mechanism': mechanism, 'sasl_plain_username': stage.user, 'sasl_plain_password': password}
            return KafkaAdminClient(bootstrap_servers=stage.guarded, security_protocol='SASL_PLAINTEXT', **sasl, **more)

        with client(stage.password) as admin:
            # Other clients may have made some by now.
            check_equal(stage.topic in admin.list_topics(), False)
        complaints.forget('in the clear')
        check_equal(complaints.texts, [])
        # It tries again until its time is over, and does not always read the reason: it may come with the end.
        check_refused(lambda: client('wrong', bootstrap_timeout_ms=2000), KafkaTimeoutError)
        complaints.forget()

    return check


# That it was slow says how busy this machine is.
logging.getLogger('kafka.net.selector').addFilter(lambda record: 'blocking the event loop' not in record.msg)

run(
    {
        'connect': connect,
        'create topic': create_topic,
        'create partitions': create_partitions,
        'produce and fetch': written({}),
        'gzip': written({'compression_type': 'gzip'}),
        'snappy': written({'compression_type': 'snappy'}),
        'lz4': written({'compression_type': 'lz4'}),
        'zstd': written({'compression_type': 'zstd'}),
        'idempotent': written({'enable_idempotence': True}),
        'record of 1 MB': written({'max_request_size': 2_000_000}, LARGE_VALUE),
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
