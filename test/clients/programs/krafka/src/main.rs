//! krafka carries out one check: `checks NAME STAGE`. Exit code 0 says that it could, and that it had nothing to warn of; else
//! stderr tells.

mod checking;

use std::collections::BTreeSet;
use std::time::Duration;

use checking::{Outcome, Stage, Warned, numbers, read, refused, until_alone, until_shared, values_of};
use krafka::admin::{ConfigEntry, ConfigOp, ConfigResource, CreateTopicsOptions, NewTopic, OffsetSpec};
use krafka::auth::AuthConfig;
use krafka::consumer::{AutoOffsetReset, IsolationLevel, OffsetAndMetadata, PartitionAssignmentStrategy};
use krafka::error::{ErrorCode, KrafkaError};
use krafka::{Compression, Kafka, Record};

const PARTITIONS: i32 = 4;
/// Where the value of a setting comes from that nobody has set.
const FALLBACK: i8 = 5;
/// It says so of every classic group and every PLAIN without TLS; the others a check asks for.
const EXPECTED_WARNINGS: [&str; 4] =
    ["KIP-1274", "sent in cleartext", "SaslAuthenticationFailed", "-not error=UnknownTopicOrPartition"];

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let stage = Stage::of(&arguments[2]);
    let warned = Warned::default();
    let writer = warned.clone();
    tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::WARN)
        .with_writer(move || writer.clone())
        .with_ansi(false)
        .init();
    let outcome = run(&arguments[1], &stage).await;
    let text = String::from_utf8_lossy(&warned.0.lock().unwrap()).into_owned();
    let is_expected = |line: &str| EXPECTED_WARNINGS.iter().any(|warning| line.contains(warning));
    let warnings: Vec<_> = text.lines().filter(|line| !is_expected(line)).collect();
    if outcome.is_ok() && warnings.is_empty() {
        return std::process::ExitCode::SUCCESS;
    }
    eprintln!("{outcome:?}\nIt has warned: {}", warnings.join("\n"));
    std::process::ExitCode::FAILURE
}

async fn run(name: &str, stage: &Stage) -> Outcome {
    match name {
        "connect" => connect(stage).await,
        "create topic" => create_topic(stage).await,
        "create partitions" => create_partitions(stage).await,
        "produce and fetch" => produce_and_fetch(stage).await,
        "gzip" => compress(stage, Compression::Gzip).await,
        "snappy" => compress(stage, Compression::Snappy).await,
        "lz4" => compress(stage, Compression::Lz4).await,
        "zstd" => compress(stage, Compression::Zstd).await,
        "idempotent" => idempotent(stage).await,
        "record of 1 MB" => large_record(stage).await,
        "from a middle offset" => from_the_middle(stage).await,
        "by time" => by_time(stage).await,
        "group of two" => group_of_two(stage).await,
        "rebalance" => rebalance(stage).await,
        "commit and resume" => commit_and_resume(stage).await,
        "static member" => static_member(stage).await,
        "delete records" => delete_records(stage).await,
        "describe" => describe(stage).await,
        "change configuration" => change_configuration(stage).await,
        "SASL PLAIN" => login(stage, AuthConfig::sasl_plain).await,
        "SASL SCRAM-SHA-256" => login(stage, AuthConfig::sasl_scram_sha256).await,
        "SASL SCRAM-SHA-512" => login(stage, AuthConfig::sasl_scram_sha512).await,
        _ => Err(format!("no check is called {name}").into()),
    }
}

async fn connect(stage: &Stage) -> Outcome {
    let cluster = stage.kafka().await?.admin().describe_cluster(Default::default()).await?;
    assert_eq!(cluster.brokers.len(), 1);
    assert_eq!(cluster.controller_id, cluster.brokers[0].id);
    assert!(!cluster.cluster_id.is_empty());
    Ok(())
}

async fn create_topic(stage: &Stage) -> Outcome {
    let admin = stage.kafka().await?.admin();
    let topic = &stage.topic;
    let wanted = NewTopic::new(topic, 3, 1)?.with_config("retention.ms", "60000");
    let trial = CreateTopicsOptions::default().validate_only(true);
    admin.create_topics([wanted.clone()], trial).await?.remove(topic).ok_or("no answer")??;
    assert!(!admin.list_topics(Default::default()).await?.contains(topic));
    admin.create_topics([wanted.clone()], Default::default()).await?.remove(topic).ok_or("no answer")??;
    let found = admin.describe_topics([topic], Default::default()).await?.remove(topic).ok_or("no answer")??;
    assert_eq!(found.partitions.len(), 3);
    assert_ne!(found.topic_id, [0; 16]);
    let again = admin.create_topics([wanted], Default::default()).await?.remove(topic).ok_or("no answer")?;
    refused(again, ErrorCode::TopicAlreadyExists);
    admin.delete_topics([topic], Default::default()).await?.remove(topic).ok_or("no answer")??;
    assert!(!admin.list_topics(Default::default()).await?.contains(topic));
    Ok(())
}

async fn create_partitions(stage: &Stage) -> Outcome {
    stage.write(1, 1).await?;
    let admin = stage.kafka().await?.admin();
    let topic = &stage.topic;
    admin.create_partitions([(topic, PARTITIONS)], Default::default()).await?.remove(topic).ok_or("no answer")??;
    let found = admin.describe_topics([topic], Default::default()).await?.remove(topic).ok_or("no answer")??;
    assert_eq!(found.partitions.len(), PARTITIONS as usize);
    let producer = stage.producer().await?;
    assert_eq!(producer.send(Record::new(topic, "last").partition(PARTITIONS - 1)).await?.offset, 0);
    Ok(producer.close().await?)
}

async fn produce_and_fetch(stage: &Stage) -> Outcome {
    stage.make_topic(1).await?;
    let producer = stage.producer().await?;
    let topic = stage.topic.as_str();
    let whole =
        Record::new(topic, "value").key("key").header("h", "x").null_header("h").header("", "").timestamp(1_234);
    assert_eq!(producer.send(whole).await?.offset, 0);
    assert_eq!(producer.send(Record::new(topic, "")).await?.offset, 1);
    assert_eq!(producer.send(Record::tombstone(topic, "")).await?.offset, 2);
    producer.close().await?;
    for isolation in [IsolationLevel::ReadUncommitted, IsolationLevel::ReadCommitted] {
        let consumer = stage.kafka().await?.consumer_without_group().isolation_level(isolation).build().await?;
        let records = stage.read_with(consumer, 0, 3).await?;
        let texts: Vec<_> = records.iter().map(|record| (record.key.as_deref(), record.value.as_deref())).collect();
        let expected: [(Option<&[u8]>, Option<&[u8]>); 3] =
            [(Some(b"key"), Some(b"value")), (None, Some(b"")), (Some(b""), None)];
        assert_eq!(texts, expected);
        let headers = [("h".into(), Some("x".into())), ("h".into(), None), ("".into(), Some("".into()))];
        assert_eq!(records[0].headers, headers);
        assert_eq!(records[0].timestamp, 1_234);
    }
    Ok(())
}

async fn compress(stage: &Stage, codec: Compression) -> Outcome {
    stage.make_topic(1).await?;
    let producer = stage.kafka().await?.producer().compression(codec).linger(Duration::from_millis(50)).build().await?;
    let value = "a text that is worth compressing ".repeat(50);
    let expected: Vec<String> = (0..100).map(|i| format!("{value}{i}")).collect();
    let mut sent = Vec::new();
    for text in &expected {
        sent.push(producer.enqueue(Record::new(stage.topic.as_str(), text.clone())).await?);
    }
    producer.close().await?;
    for (i, one) in sent.into_iter().enumerate() {
        assert_eq!(one.await?.offset, i as i64);
    }
    assert_eq!(values_of(&stage.read_from(0, 100).await?), expected);
    Ok(())
}

/// Small batches, many in flight: one that overtakes another would be seen.
async fn idempotent(stage: &Stage) -> Outcome {
    stage.make_topic(1).await?;
    let builder = stage.kafka().await?.producer().idempotent(true).batch_size(200).linger(Duration::ZERO);
    let producer = builder.build().await?;
    let mut sent = Vec::new();
    for value in numbers(0..2_000) {
        sent.push(producer.enqueue(Record::new(stage.topic.as_str(), value)).await?);
    }
    for (i, one) in sent.into_iter().enumerate() {
        assert_eq!(one.await?.offset, i as i64);
    }
    producer.close().await?;
    assert_eq!(values_of(&stage.read_from(0, 2_000).await?), numbers(0..2_000));
    Ok(())
}

async fn large_record(stage: &Stage) -> Outcome {
    stage.make_topic(1).await?;
    let value = "x".repeat(1_000_000);
    let producer = stage.producer().await?;
    assert_eq!(producer.send(Record::new(stage.topic.as_str(), value.clone())).await?.offset, 0);
    assert_eq!(producer.send(Record::new(stage.topic.as_str(), "after")).await?.offset, 1);
    producer.close().await?;
    // Smaller limits than the record do not keep a consumer from it.
    let builder = stage.kafka().await?.consumer_without_group();
    let consumer = builder.fetch_max_bytes(1_000).max_partition_fetch_bytes(1_000).build().await?;
    assert_eq!(values_of(&stage.read_with(consumer, 0, 2).await?), [value, "after".to_owned()]);
    Ok(())
}

async fn from_the_middle(stage: &Stage) -> Outcome {
    stage.write(1, 10).await?;
    assert_eq!(values_of(&stage.read_from(7, 3).await?), numbers(7..10));
    Ok(())
}

async fn by_time(stage: &Stage) -> Outcome {
    stage.write(1, 3).await?;
    let admin = stage.kafka().await?.admin();
    for (spec, offset) in [
        (OffsetSpec::Timestamp(1_001), 1),
        (OffsetSpec::Earliest, 0),
        (OffsetSpec::Latest, 3),
        (OffsetSpec::MaxTimestamp, 2),
    ] {
        let mut found = admin.list_offsets([(stage.first(), spec)], Default::default()).await?;
        assert_eq!(found.remove(&stage.first()).ok_or("no answer")??.offset, offset, "{spec:?}");
    }
    let consumer = stage.kafka().await?.consumer_without_group().build().await?;
    consumer.assign(&stage.topic, vec![0]).await?;
    let late = consumer.offsets_for_times(&[(&stage.topic, 0)], 5_000).await;
    assert_eq!(late.into_values().collect::<krafka::Result<Vec<_>>>()?, [-1]);
    consumer.seek_to_timestamp(&stage.topic, 0, 1_002).await?;
    assert_eq!(values_of(&read(&consumer, 1).await?), ["2"]);
    Ok(consumer.close().await?)
}

async fn group_of_two(stage: &Stage) -> Outcome {
    stage.write(PARTITIONS, 0).await?;
    let mut one = stage.join(&stage.group(), |builder| builder).await?;
    let mut other = stage.join(&stage.group(), |builder| builder).await?;
    until_shared(&mut one, &mut other, 0).await?;
    let producer = stage.producer().await?;
    for i in 0..100 {
        let record = Record::new(stage.topic.as_str(), i.to_string()).partition(i % PARTITIONS);
        assert_eq!(producer.send(record).await?.offset, i64::from(i / PARTITIONS));
    }
    producer.close().await?;
    until_shared(&mut one, &mut other, 100).await?;
    assert_eq!((one.values.len(), other.values.len()), (50, 50));
    one.consumer.close().await?;
    other.consumer.close().await?;
    let lag = stage.kafka().await?.admin().consumer_group_lag(stage.group(), Default::default()).await?;
    assert_eq!(lag.len(), PARTITIONS as usize);
    for (_, one) in lag {
        assert_eq!(one?.lag, Some(0));
    }
    Ok(())
}

async fn rebalance(stage: &Stage) -> Outcome {
    stage.write(PARTITIONS, 8).await?;
    for (strategy, revoked) in [
        (PartitionAssignmentStrategy::Range, 4),
        (PartitionAssignmentStrategy::RoundRobin, 4),
        (PartitionAssignmentStrategy::CooperativeSticky, 2),
    ] {
        let group = format!("{}-{}", stage.topic, strategy.protocol_name());
        let mut one = stage.join(&group, |builder| builder.partition_assignment_strategy(strategy)).await?;
        until_alone(&mut one, 4).await?;
        let mut other = stage.join(&group, |builder| builder.partition_assignment_strategy(strategy)).await?;
        until_shared(&mut one, &mut other, 0).await?;
        assert_eq!(one.seen.revoked.lock().unwrap().len(), revoked, "{strategy:?}");
        other.consumer.close().await?;
        until_alone(&mut one, 4).await?;
        assert_eq!(*one.seen.lost.lock().unwrap(), BTreeSet::new());
        one.consumer.close().await?;
    }
    Ok(())
}

async fn commit_and_resume(stage: &Stage) -> Outcome {
    stage.write(1, 10).await?;
    let kafka = stage.kafka().await?;
    let builder = || kafka.consumer(stage.group()).enable_auto_commit(false).max_poll_records(5);
    let consumer = builder().auto_offset_reset(AutoOffsetReset::Earliest).build().await?;
    consumer.subscribe([&stage.topic]).await?;
    assert_eq!(values_of(&read(&consumer, 5).await?), numbers(0..5));
    let mut half = OffsetAndMetadata::with_metadata(5, "half of it");
    half.leader_epoch = Some(0);
    consumer.commit_offsets([(stage.first(), half)]).await?;
    consumer.close().await?;
    let consumer = builder().build().await?;
    consumer.subscribe([&stage.topic]).await?;
    assert_eq!(values_of(&read(&consumer, 5).await?), numbers(5..10));
    consumer.close().await?;
    let admin = kafka.admin();
    let mut offsets = admin.list_consumer_group_offsets(stage.group(), Default::default()).await?;
    let found = offsets.remove(&stage.first()).ok_or("no answer")??;
    assert_eq!((found.offset, found.leader_epoch, found.metadata.as_deref()), (Some(5), Some(0), Some("half of it")));
    let change = [(stage.first(), 7)];
    admin
        .alter_consumer_group_offsets(stage.group(), change, Default::default())
        .await?
        .remove(&stage.first())
        .ok_or("no answer")??;
    let gone = admin.delete_consumer_group_offsets(stage.group(), [stage.first()], Default::default()).await?;
    for (_, result) in gone {
        result?;
    }
    admin
        .delete_consumer_groups([stage.group()], Default::default())
        .await?
        .remove(&stage.group())
        .ok_or("no answer")??;
    Ok(())
}

async fn static_member(stage: &Stage) -> Outcome {
    stage.write(PARTITIONS, 8).await?;
    let mut other = stage.join(&stage.group(), |builder| builder.group_instance_id("the-other")).await?;
    let mut one = stage.join(&stage.group(), |builder| builder.group_instance_id("the-one")).await?;
    until_shared(&mut one, &mut other, 0).await?;
    let had = one.partitions().await;
    let generation = one.consumer.group_metadata().await.map(|group| group.generation_id());
    // It says nothing of leaving, so nobody else gets what it has.
    one.consumer.close().await?;
    let mut again = stage.join(&stage.group(), |builder| builder.group_instance_id("the-one")).await?;
    until_shared(&mut again, &mut other, 0).await?;
    assert_eq!(again.partitions().await, had);
    assert_eq!(again.consumer.group_metadata().await.map(|group| group.generation_id()), generation);
    again.consumer.close().await?;
    other.consumer.close().await?;
    Ok(())
}

async fn delete_records(stage: &Stage) -> Outcome {
    stage.write(1, 3).await?;
    let admin = stage.kafka().await?.admin();
    let mut deleted = admin.delete_records([(stage.first(), 2)], Default::default()).await?;
    assert_eq!(deleted.remove(&stage.first()).ok_or("no answer")??, 2);
    let consumer = stage.kafka().await?.consumer_without_group().build().await?;
    consumer.assign(&stage.topic, vec![0]).await?;
    consumer.seek_to_beginning(&stage.topic, 0).await?;
    assert_eq!(values_of(&read(&consumer, 1).await?), ["2"]);
    Ok(consumer.close().await?)
}

async fn describe(stage: &Stage) -> Outcome {
    stage.write(2, 2).await?;
    let admin = stage.kafka().await?.admin();
    let mut one = stage.join(&stage.group(), |builder| builder).await?;
    until_alone(&mut one, 2).await?;
    let mut groups = admin.describe_consumer_groups([stage.group()], Default::default()).await?;
    let group = groups.remove(&stage.group()).ok_or("no answer")??;
    assert_eq!((group.state.as_str(), group.assignor.as_deref()), ("Stable", Some("range")));
    assert_eq!((group.members.len(), group.members[0].client_id.as_str()), (1, "krafka"));
    let listed = admin.list_consumer_groups(Default::default()).await?;
    let mut found = Vec::new();
    for (_, groups) in listed {
        found.extend(groups?.into_iter().filter(|one| one.group_id == stage.group()).map(|one| one.state));
    }
    assert_eq!(found, [Some("Stable".to_owned())]);
    let deleted = admin.delete_consumer_groups([stage.group()], Default::default()).await?;
    refused(deleted.into_values().next().ok_or("no answer")?, ErrorCode::NonEmptyGroup);
    one.consumer.close().await?;
    let broker = admin.describe_cluster(Default::default()).await?.controller_id;
    let shown = admin.describe_configs([ConfigResource::broker(broker)], Default::default()).await?;
    for (_, entries) in shown {
        assert!(!entries?.is_empty());
    }
    let missing = format!("{}-not", stage.topic);
    let mut described = admin.describe_topics([&missing], Default::default()).await?;
    refused(described.remove(&missing).ok_or("no answer")?, ErrorCode::UnknownTopicOrPartition);
    Ok(())
}

async fn change_configuration(stage: &Stage) -> Outcome {
    stage.make_topic(1).await?;
    let before = retention(stage).await?;
    assert_eq!(before.config_source, FALLBACK);
    change(stage, ConfigOp::set("retention.ms", "5000")).await??;
    assert_eq!(retention(stage).await?.value.as_deref(), Some("5000"));
    change(stage, ConfigOp::delete("retention.ms")).await??;
    let after = retention(stage).await?;
    assert_eq!((after.value, after.config_source), (before.value, FALLBACK));
    refused(change(stage, ConfigOp::set("no.such.name", "1")).await?, ErrorCode::InvalidConfig);
    Ok(())
}

async fn change(stage: &Stage, change: ConfigOp) -> krafka::Result<krafka::Result<()>> {
    let resource = ConfigResource::topic(stage.topic.as_str());
    let admin = stage.kafka().await?.admin();
    let mut changed = admin.incremental_alter_configs([(resource.clone(), vec![change])], Default::default()).await?;
    Ok(changed.remove(&resource).expect("each resource has an answer"))
}

async fn retention(stage: &Stage) -> Result<ConfigEntry, Box<dyn std::error::Error>> {
    let resource = ConfigResource::topic(stage.topic.as_str());
    let mut shown = stage.kafka().await?.admin().describe_configs([resource.clone()], Default::default()).await?;
    let entries = shown.remove(&resource).ok_or("no answer")??;
    Ok(entries.into_iter().find(|entry| entry.name == "retention.ms").ok_or("it has no retention.ms")?)
}

async fn login(stage: &Stage, mechanism: fn(String, String) -> AuthConfig) -> Outcome {
    let connect = |password: &str| {
        let security = mechanism(stage.user.clone(), password.to_owned());
        Kafka::builder(stage.guarded.as_str()).security(security).connect()
    };
    let kafka = connect(&stage.password).await?;
    for (_, made) in
        kafka.admin().create_topics([NewTopic::new(stage.topic.as_str(), 1, 1)?], Default::default()).await?
    {
        made?;
    }
    let producer = kafka.producer().build().await?;
    assert_eq!(producer.send(Record::new(stage.topic.as_str(), "value")).await?.offset, 0);
    producer.close().await?;
    match connect("not the password").await {
        Err(KrafkaError::Auth { .. }) => Ok(()),
        Err(other) => Err(other.into()),
        Ok(_) => Err("it came in with another password".into()),
    }
}
