import static org.apache.kafka.clients.consumer.ConsumerConfig.*;

import java.io.*;
import java.util.*;
import java.util.concurrent.Future;
import java.util.regex.Pattern;
import java.util.stream.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.header.internals.RecordHeader;

/**
 * Apache Kafka's own library carries out one check: `JavaClient NAME STAGE`. Exit code 0 says that it could, and that neither it nor
 * its library had anything to warn of; else stderr tells.
 */
public class JavaClient extends Checking {
  static final int PARTITIONS = 4;
  /** Found in each line of what the library may complain of in this check; null: nothing. */
  static Pattern expectedWarning = null;

  static final Map<String, Check> checks = new HashMap<>();

  static {
    checks.put("connect", JavaClient::connect);
    checks.put("create topic", JavaClient::createTopic);
    checks.put("create partitions", JavaClient::createPartitions);
    checks.put("produce and fetch", JavaClient::produceAndFetch);
    for (String codec : List.of("gzip", "snappy", "lz4", "zstd")) checks.put(codec, () -> compress(codec));
    checks.put("idempotent", JavaClient::idempotent);
    checks.put("record of 1 MB", JavaClient::largeRecord);
    checks.put("from a middle offset", JavaClient::fromTheMiddle);
    checks.put("by time", JavaClient::byTime);
    checks.put("group of two", JavaClient::groupOfTwo);
    checks.put("rebalance", JavaClient::rebalance);
    checks.put("commit and resume", JavaClient::commitAndResume);
    checks.put("static member", JavaClient::staticMember);
    checks.put("delete records", JavaClient::deleteRecords);
    checks.put("describe", JavaClient::describe);
    checks.put("change configuration", JavaClient::changeConfiguration);
    checks.put("SASL PLAIN", () -> login("PLAIN", "plain.PlainLoginModule"));
    checks.put("SASL SCRAM-SHA-256", () -> login("SCRAM-SHA-256", "scram.ScramLoginModule"));
    checks.put("SASL SCRAM-SHA-512", () -> login("SCRAM-SHA-512", "scram.ScramLoginModule"));
  }

  public static void main(String[] arguments) {
    PrintStream stderr = System.err;
    ByteArrayOutputStream warned = new ByteArrayOutputStream();
    System.setErr(new PrintStream(warned));
    System.setProperty("org.slf4j.simpleLogger.defaultLogLevel", "warn");
    stage = Pattern.compile("\"(\\w+)\":\"([^\"]*)\"").matcher(arguments[1]).results()
      .collect(Collectors.toMap(found -> found.group(1), found -> found.group(2)));
    topic = stage.get("topic");
    int code = 0;
    try {
      checks.get(arguments[0]).run();
    } catch (Throwable problem) {
      problem.printStackTrace(stderr);
      code = 1;
    }
    String unexpected = warned.toString().lines()
      .filter(line -> expectedWarning == null || !expectedWarning.matcher(line).find()).collect(Collectors.joining("\n"));
    if (!unexpected.isEmpty()) {
      stderr.println("It has warned: " + unexpected);
      code = 1;
    }
    System.exit(code);
  }

  static void connect() throws Exception {
    try (Admin admin = Admin.create(open())) {
      DescribeClusterResult cluster = admin.describeCluster();
      equal(cluster.nodes().get().size(), 1);
      equal(cluster.controller().get(), cluster.nodes().get().iterator().next());
      isTrue(!cluster.clusterId().get().isEmpty(), "a cluster has an id");
    }
  }

  static void createTopic() throws Exception {
    try (Admin admin = Admin.create(open())) {
      NewTopic wanted = new NewTopic(topic, 3, (short) 1).configs(Map.of("retention.ms", "60000"));
      admin.createTopics(List.of(wanted), new CreateTopicsOptions().validateOnly(true)).all().get();
      isTrue(!admin.listTopics().names().get().contains(topic), "a trial makes no topic");
      CreateTopicsResult created = admin.createTopics(List.of(wanted));
      equal(created.numPartitions(topic).get(), 3);
      equal(created.config(topic).get().get("retention.ms").value(), "60000");
      Uuid id = created.topicId(topic).get();
      equal(admin.describeTopics(TopicCollection.ofTopicIds(List.of(id))).allTopicIds().get().get(id).name(), topic);
      refused(TopicExistsException.class, () -> admin.createTopics(List.of(wanted)).all().get());
      admin.deleteTopics(List.of(topic)).all().get();
      isTrue(!admin.listTopics().names().get().contains(topic), "a deleted topic is not listed");
    }
  }

  static void createPartitions() throws Exception {
    write(1, 1);
    try (Admin admin = Admin.create(open()); Producer<String, String> producer = producer(open())) {
      admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(PARTITIONS))).all().get();
      equal(admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size(), PARTITIONS);
      equal(producer.send(new ProducerRecord<>(topic, PARTITIONS - 1, "key", "value")).get().offset(), 0L);
      refused(InvalidPartitionsException.class, () -> admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(2))).all().get());
    }
  }

  static void produceAndFetch() throws Exception {
    write(1, 0);
    RecordHeader[] headers = { new RecordHeader("h", "x".getBytes()), new RecordHeader("h", null), new RecordHeader("", new byte[0]) };
    try (Producer<String, String> producer = producer(open())) {
      RecordMetadata told = producer.send(new ProducerRecord<>(topic, 0, 1_234L, "key", "value", List.of(headers))).get();
      equal(List.of(told.offset(), told.timestamp(), told.partition()), List.of(0L, 1_234L, 0));
      equal(producer.send(new ProducerRecord<>(topic, 0, null, "")).get().offset(), 1L);
      equal(producer.send(new ProducerRecord<>(topic, 0, "", null)).get().offset(), 2L);
    }
    for (String isolation : List.of("read_uncommitted", "read_committed")) {
      List<ConsumerRecord<String, String>> records = readFrom(0, 3, ISOLATION_LEVEL_CONFIG, isolation);
      equal(records.stream().map(ConsumerRecord::key).toArray(), new String[] { "key", null, "" });
      equal(records.stream().map(ConsumerRecord::value).toArray(), new String[] { "value", "", null });
      equal(records.get(0).timestamp(), 1_234L);
      equal(records.get(0).headers().toArray(), headers);
    }
    brokerReads("value");
  }

  static void compress(String codec) throws Exception {
    write(1, 0);
    String value = "a text that is worth compressing ".repeat(50);
    try (Producer<String, String> producer = producer(open("compression.type", codec, "linger.ms", 50))) {
      for (int i = 0; i < 100; i++) producer.send(new ProducerRecord<>(topic, 0, "key " + i, value + i));
    }
    List<String> expected = IntStream.range(0, 100).mapToObj(i -> value + i).collect(Collectors.toList());
    equal(values(readFrom(0, 100)), expected);
    brokerReads(value + "0");
  }

  /** Small batches, many in flight: one that overtakes another would be seen. */
  static void idempotent() throws Exception {
    write(1, 0);
    List<Long> offsets = new ArrayList<>();
    try (Producer<String, String> producer = producer(open("enable.idempotence", true, "batch.size", 200, "linger.ms", 0))) {
      var sent = new ArrayList<Future<RecordMetadata>>();
      for (int i = 0; i < 2_000; i++) sent.add(producer.send(new ProducerRecord<>(topic, 0, null, String.valueOf(i))));
      for (var one : sent) offsets.add(one.get().offset());
    }
    equal(offsets, LongStream.range(0, 2_000).boxed().collect(Collectors.toList()));
    equal(values(readFrom(0, 2_000)), IntStream.range(0, 2_000).mapToObj(String::valueOf).collect(Collectors.toList()));
    try (Admin admin = Admin.create(open()); Consumer<String, String> consumer = consumer(open())) {
      equal(consumer.endOffsets(List.of(first())).get(first()), 2_000L);
    }
  }

  static void largeRecord() throws Exception {
    write(1, 0);
    String value = "x".repeat(1_000_000);
    try (Producer<String, String> producer = producer(open("max.request.size", 2_000_000))) {
      producer.send(new ProducerRecord<>(topic, 0, null, value)).get();
      producer.send(new ProducerRecord<>(topic, 0, null, "after")).get();
    }
    // Smaller limits than the record do not keep a consumer from it.
    equal(values(readFrom(0, 2, FETCH_MAX_BYTES_CONFIG, 1_000, MAX_PARTITION_FETCH_BYTES_CONFIG, 1_000)), List.of(value, "after"));
  }

  static void fromTheMiddle() throws Exception {
    write(1, 10);
    equal(values(readFrom(7, 3)), List.of("7", "8", "9"));
    // Out of range: it begins again where it is told to.
    expectedWarning = Pattern.compile("out of range");
    equal(values(readFrom(11, 10)).get(0), "0");
  }

  static void byTime() throws Exception {
    write(1, 3);
    try (Admin admin = Admin.create(open()); Consumer<String, String> consumer = consumer(open())) {
      OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(first(), 1_001L)).get(first());
      equal(List.of(found.offset(), found.timestamp()), List.of(1L, 1_001L));
      equal(consumer.offsetsForTimes(Map.of(first(), 5_000L)).get(first()), null);
      equal(offset(admin, OffsetSpec.forTimestamp(1_002)), 2L);
      equal(offset(admin, OffsetSpec.earliest()), 0L);
      equal(offset(admin, OffsetSpec.latest()), 3L);
      equal(offset(admin, OffsetSpec.maxTimestamp()), 2L);
    }
  }

  static long offset(Admin admin, OffsetSpec wanted) throws Exception {
    return admin.listOffsets(Map.of(first(), wanted)).all().get().get(first()).offset();
  }

  static void groupOfTwo() throws Exception {
    write(PARTITIONS, 100);
    String group = topic + "-group";
    try (Member one = new Member(GROUP_ID_CONFIG, group); Member other = new Member(GROUP_ID_CONFIG, group)) {
      // Both begin before either reads, or the first could have read all.
      one.consumer.pause(one.consumer.assignment());
      pollUntil(List.of(one, other), () -> one.count() == 2 && other.count() == 2, "each has two partitions");
      equal(union(one, other).size(), PARTITIONS);
      pollUntil(List.of(one, other), () -> distinct(one, other).size() == 100, "all records are read");
    }
    try (Admin admin = Admin.create(open())) {
      var offsets = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
      equal(offsets.values().stream().mapToLong(OffsetAndMetadata::offset).sum(), 100L);
    }
  }

  static Set<TopicPartition> union(Member one, Member other) {
    Set<TopicPartition> all = new HashSet<>(one.consumer.assignment());
    all.addAll(other.consumer.assignment());
    return all;
  }

  static Set<String> distinct(Member one, Member other) {
    return Stream.concat(one.values.stream(), other.values.stream()).collect(Collectors.toSet());
  }

  static void rebalance() throws Exception {
    write(PARTITIONS, 8);
    for (Class<?> assignor : List.of(RangeAssignor.class, RoundRobinAssignor.class, StickyAssignor.class, CooperativeStickyAssignor.class)) {
      boolean isCooperative = assignor == CooperativeStickyAssignor.class;
      Object[] settings = {
        GROUP_ID_CONFIG, topic + assignor.getSimpleName(), PARTITION_ASSIGNMENT_STRATEGY_CONFIG, assignor.getName(), HEARTBEAT_INTERVAL_MS_CONFIG, 200
      };
      try (Member one = new Member(settings)) {
        pollUntil(List.of(one), () -> one.count() == PARTITIONS, "alone it has all");
        try (Member other = new Member(settings)) {
          pollUntil(List.of(one, other), () -> one.count() == 2 && other.count() == 2, "two share");
          equal(union(one, other).size(), PARTITIONS);
          equal(one.revoked.size(), isCooperative ? 2 : PARTITIONS);
        }
        pollUntil(List.of(one), () -> one.count() == PARTITIONS, "it has all again");
        equal(one.lost, Set.of());
      }
    }
  }

  static void commitAndResume() throws Exception {
    write(1, 10);
    Object[] settings = { GROUP_ID_CONFIG, topic + "-group", ENABLE_AUTO_COMMIT_CONFIG, false, MAX_POLL_RECORDS_CONFIG, 5 };
    try (Consumer<String, String> consumer = consumer(open(settings))) {
      consumer.subscribe(List.of(topic));
      equal(values(read(consumer, 5)), List.of("0", "1", "2", "3", "4"));
      consumer.commitSync(Map.of(first(), new OffsetAndMetadata(5, Optional.of(0), "half of it")));
    }
    try (Consumer<String, String> consumer = consumer(open(settings))) {
      consumer.subscribe(List.of(topic));
      equal(values(read(consumer, 5)), List.of("5", "6", "7", "8", "9"));
      equal(consumer.committed(Set.of(first())).get(first()), new OffsetAndMetadata(5, Optional.of(0), "half of it"));
    }
  }

  static void staticMember() throws Exception {
    write(PARTITIONS, 8);
    Object[] settings = { GROUP_ID_CONFIG, topic + "-group", GROUP_INSTANCE_ID_CONFIG, "the-one" };
    int generation;
    try (Member other = new Member(GROUP_ID_CONFIG, topic + "-group", GROUP_INSTANCE_ID_CONFIG, "the-other")) {
      Set<TopicPartition> had;
      try (Member one = new Member(settings)) {
        pollUntil(List.of(one, other), () -> one.count() == 2 && other.count() == 2, "two share");
        had = one.consumer.assignment();
        generation = one.consumer.groupMetadata().generationId();
      }
      try (Member again = new Member(settings)) {
        pollUntil(List.of(again, other), () -> again.count() > 0, "it has partitions again");
        equal(again.consumer.assignment(), had);
        equal(again.consumer.groupMetadata().generationId(), generation);
        expectedWarning = Pattern.compile("FencedInstanceIdException|same group.instance.id");
        try (Member usurper = new Member(settings)) {
          pollUntil(List.of(usurper, other), () -> usurper.count() > 0, "the newer of the same name has partitions");
          refused(FencedInstanceIdException.class, () -> again.consumer.commitSync());
        }
      }
    }
    try (Admin admin = Admin.create(open())) {
      var leaving = List.of(new MemberToRemove("the-one"), new MemberToRemove("the-other"));
      admin.removeMembersFromConsumerGroup(topic + "-group", new RemoveMembersFromConsumerGroupOptions(leaving)).all().get();
      admin.deleteConsumerGroups(List.of(topic + "-group")).all().get();
    }
  }

  static void deleteRecords() throws Exception {
    write(1, 3);
    try (Admin admin = Admin.create(open()); Consumer<String, String> consumer = consumer(open())) {
      DeletedRecords deleted = admin.deleteRecords(Map.of(first(), RecordsToDelete.beforeOffset(2))).lowWatermarks().get(first()).get();
      equal(deleted.lowWatermark(), 2L);
      equal(consumer.beginningOffsets(List.of(first())).get(first()), 2L);
      consumer.assign(List.of(first()));
      equal(values(read(consumer, 1)), List.of("2"));
    }
  }

  static void describe() throws Exception {
    write(2, 2);
    String group = topic + "-group";
    try (Admin admin = Admin.create(open()); Member member = new Member(GROUP_ID_CONFIG, group, "client.id", "a-client")) {
      TopicDescription described = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
      equal(described.partitions().stream().map(partition -> partition.leader().id() + " " + partition.isr().size()).distinct().count(), 1L);
      equal(described.partitions().size(), 2);
      pollUntil(List.of(member), () -> member.values.size() == 2, "it has read all");
      member.consumer.commitSync();
      ConsumerGroupDescription found = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
      equal(List.of(found.groupState(), found.partitionAssignor(), found.members().size()), List.of(GroupState.STABLE, "range", 1));
      MemberDescription only = found.members().iterator().next();
      equal(only.clientId(), "a-client");
      equal(only.assignment().topicPartitions(), member.consumer.assignment());
      GroupListing listed = admin.listGroups().all().get().stream().filter(one -> one.groupId().equals(group)).findAny().get();
      equal(List.of(listed.groupState().get(), listed.type().get()), List.of(GroupState.STABLE, GroupType.CLASSIC));
      refused(GroupNotEmptyException.class, () -> admin.deleteConsumerGroups(List.of(group)).all().get());
      ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, String.valueOf(described.partitions().get(0).leader().id()));
      isTrue(!admin.describeConfigs(List.of(broker)).all().get().get(broker).entries().isEmpty(), "the broker shows its settings");
      refused(UnknownTopicOrPartitionException.class, () -> admin.describeTopics(List.of(topic + "-not")).allTopicNames().get());
    }
  }

  static void changeConfiguration() throws Exception {
    write(1, 0);
    ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
    try (Admin admin = Admin.create(open())) {
      ConfigEntry before = admin.describeConfigs(List.of(resource)).all().get().get(resource).get("retention.ms");
      equal(before.isDefault(), true);
      change(admin, resource, "retention.ms", "5000", AlterConfigOp.OpType.SET);
      ConfigEntry after = admin.describeConfigs(List.of(resource)).all().get().get(resource).get("retention.ms");
      equal(List.of(after.value(), after.source()), List.of("5000", ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG));
      change(admin, resource, "cleanup.policy", "compact", AlterConfigOp.OpType.APPEND);
      change(admin, resource, "retention.ms", "", AlterConfigOp.OpType.DELETE);
      equal(admin.describeConfigs(List.of(resource)).all().get().get(resource).get("retention.ms"), before);
      refused(InvalidConfigurationException.class, () -> change(admin, resource, "no.such.name", "1", AlterConfigOp.OpType.SET));
    }
  }

  static void change(Admin admin, ConfigResource resource, String name, String value, AlterConfigOp.OpType kind) throws Exception {
    AlterConfigOp change = new AlterConfigOp(new ConfigEntry(name, value), kind);
    admin.incrementalAlterConfigs(Map.of(resource, List.of(change))).all().get();
  }

  static void login(String mechanism, String module) throws Exception {
    try (Admin admin = Admin.create(guarded(mechanism, module, stage.get("password")))) {
      create(admin, 1);
    }
    try (Producer<String, String> producer = producer(guarded(mechanism, module, stage.get("password")))) {
      producer.send(new ProducerRecord<>(topic, 0, "key", "value")).get();
    }
    expectedWarning = Pattern.compile("Fatal error during metadata update|authentication|AuthenticationException");
    try (Admin admin = Admin.create(guarded(mechanism, module, "not the password"))) {
      refused(SaslAuthenticationException.class, () -> admin.describeCluster().nodes().get());
    }
  }

  static Map<String, Object> guarded(String mechanism, String module, String password) {
    String login = "org.apache.kafka.common.security.%s required username=\"%s\" password=\"%s\";";
    Map<String, Object> settings = open("security.protocol", "SASL_PLAINTEXT", "sasl.mechanism", mechanism);
    settings.put("bootstrap.servers", stage.get("guarded"));
    settings.put("sasl.jaas.config", String.format(login, module, stage.get("user"), password));
    return settings;
  }
}
