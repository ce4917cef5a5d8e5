import static org.apache.kafka.clients.consumer.ConsumerConfig.*;

import java.net.URI;
import java.net.http.*;
import java.time.Duration;
import java.util.*;
import java.util.function.BooleanSupplier;
import java.util.stream.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.serialization.*;

/** What the checks of JavaClient are made of. */
class Checking {
  interface Check {
    void run() throws Exception;
  }

  static final long PATIENCE_MS = 30_000;
  static Map<String, String> stage;
  /** A name that is this check's own; there is no such topic yet. */
  static String topic;

  static void equal(Object actual, Object expected) {
    if (!Objects.deepEquals(actual, expected)) throw new AssertionError("expected " + expected + ", not " + actual);
  }

  static void isTrue(boolean holds, String claim) {
    if (!holds) throw new AssertionError("not so: " + claim);
  }

  static Map<String, Object> open(Object... more) {
    Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", stage.get("open")));
    for (int i = 0; i < more.length; i += 2) settings.put((String) more[i], more[i + 1]);
    return settings;
  }

  static KafkaProducer<String, String> producer(Map<String, Object> settings) {
    return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
  }

  static KafkaConsumer<String, String> consumer(Map<String, Object> settings) {
    settings.putIfAbsent(AUTO_OFFSET_RESET_CONFIG, "earliest");
    return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
  }

  static void create(Admin admin, int partitions) throws Exception {
    admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
  }

  static TopicPartition first() {
    return new TopicPartition(topic, 0);
  }

  /** Creates the topic with records "0", "1", … in partition 0, or spread. */
  static void write(int partitions, int records) throws Exception {
    try (Admin admin = Admin.create(open()); Producer<String, String> producer = producer(open())) {
      create(admin, partitions);
      for (int i = 0; i < records; i++) {
        producer.send(new ProducerRecord<>(topic, i % partitions, 1_000L + i, "key " + i, String.valueOf(i)));
      }
    }
  }

  /** Polls until there are so many. */
  static List<ConsumerRecord<String, String>> read(Consumer<String, String> consumer, int count) {
    List<ConsumerRecord<String, String>> records = new ArrayList<>();
    long end = System.currentTimeMillis() + PATIENCE_MS;
    while (records.size() < count && System.currentTimeMillis() < end) consumer.poll(Duration.ofMillis(200)).forEach(records::add);
    equal(records.size(), count);
    return records;
  }

  static List<ConsumerRecord<String, String>> readFrom(long offset, int count, Object... more) {
    try (Consumer<String, String> consumer = consumer(open(more))) {
      consumer.assign(List.of(first()));
      consumer.seek(first(), offset);
      return read(consumer, count);
    }
  }

  static List<String> values(List<ConsumerRecord<String, String>> records) {
    return records.stream().map(ConsumerRecord::value).collect(Collectors.toList());
  }

  /** What the broker itself makes of the records. */
  static void brokerReads(String value) throws Exception {
    URI address = URI.create(stage.get("http") + "/topics/" + topic + "/consume?partition=0&offset=0");
    HttpRequest request = HttpRequest.newBuilder(address).build();
    String body = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).body();
    isTrue(body.contains("\"value\":\"" + value + "\""), "HTTP reads " + value + " in " + body);
  }

  /** Polls all of them, for a group moves on only while its members poll. */
  static void pollUntil(List<Member> members, BooleanSupplier isReached, String claim) {
    long end = System.currentTimeMillis() + PATIENCE_MS;
    while (!isReached.getAsBoolean() && System.currentTimeMillis() < end) members.forEach(Member::poll);
    isTrue(isReached.getAsBoolean(), claim + ": " + members);
  }

  /** Of a group; knows what it has, and what was ever taken from it. */
  static class Member implements ConsumerRebalanceListener, AutoCloseable {
    final KafkaConsumer<String, String> consumer;
    final List<String> values = new ArrayList<>();
    final Set<TopicPartition> revoked = new HashSet<>();
    final Set<TopicPartition> lost = new HashSet<>();

    Member(Object... more) {
      consumer = consumer(open(more));
      consumer.subscribe(List.of(topic), this);
    }

    void poll() {
      consumer.poll(Duration.ofMillis(50)).forEach(record -> values.add(record.value()));
    }

    int count() {
      return consumer.assignment().size();
    }

    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {}

    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
      revoked.addAll(partitions);
    }

    public void onPartitionsLost(Collection<TopicPartition> partitions) {
      lost.addAll(partitions);
    }

    public void close() {
      consumer.close();
    }

    public String toString() {
      return consumer.assignment() + " at " + consumer.groupMetadata();
    }
  }

  static void refused(Class<?> reason, Check check) {
    try {
      check.run();
    } catch (Exception problem) {
      Throwable cause = problem instanceof java.util.concurrent.ExecutionException ? problem.getCause() : problem;
      if (reason.isInstance(cause)) return;
      throw new AssertionError("expected " + reason, cause);
    }
    throw new AssertionError("expected " + reason);
  }
}
