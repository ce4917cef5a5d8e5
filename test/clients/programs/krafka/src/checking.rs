//! What the checks are made of. What does not hold panics.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use krafka::consumer::{AutoOffsetReset, Consumer, ConsumerRebalanceListener, TopicPartition};
use krafka::consumer::{ConsumerBuilder, ConsumerRecord};
use krafka::error::{ErrorCode, KrafkaError};
use krafka::producer::Producer;
use krafka::{Kafka, Record};

pub type Outcome = Result<(), Box<dyn std::error::Error>>;

const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(50);

/// What main was told. The topic's name is this check's own; there is no such topic yet.
pub struct Stage {
    pub open: String,
    pub guarded: String,
    pub user: String,
    pub password: String,
    pub topic: String,
}

/// What clients warn of.
#[derive(Clone, Default)]
pub struct Warned(pub Arc<Mutex<Vec<u8>>>);

impl Write for Warned {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(text)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Stage {
    pub fn of(json: &str) -> Self {
        let told: serde_json::Value = serde_json::from_str(json).expect("the stage is JSON");
        let text = |name: &str| told[name].as_str().unwrap_or_default().to_owned();
        Self {
            open: text("open"),
            guarded: text("guarded"),
            user: text("user"),
            password: text("password"),
            topic: text("topic"),
        }
    }

    pub async fn kafka(&self) -> krafka::Result<Kafka> {
        Kafka::builder(self.open.as_str()).connect().await
    }

    pub async fn producer(&self) -> krafka::Result<Producer> {
        self.kafka().await?.producer().build().await
    }

    pub fn first(&self) -> TopicPartition {
        TopicPartition::new(self.topic.as_str(), 0)
    }

    pub fn group(&self) -> String {
        format!("{}-group", self.topic)
    }

    pub async fn make_topic(&self, partitions: i32) -> Outcome {
        let topic = krafka::admin::NewTopic::new(self.topic.as_str(), partitions, 1)?;
        let made = self.kafka().await?.admin().create_topics([topic], Default::default()).await?;
        for (_, result) in made {
            result?;
        }
        Ok(())
    }

    /// The topic with records "0", "1", …, spread over its partitions, a millisecond apart.
    pub async fn write(&self, partitions: i32, count: i32) -> Outcome {
        self.make_topic(partitions).await?;
        let producer = self.producer().await?;
        for i in 0..count {
            let record = Record::new(self.topic.as_str(), i.to_string()).key(format!("key {i}"));
            let sent = producer.send(record.partition(i % partitions).timestamp(1_000 + i64::from(i))).await?;
            assert_eq!(sent.offset, i64::from(i / partitions));
        }
        Ok(producer.close().await?)
    }

    pub async fn read_from(&self, offset: i64, count: usize) -> krafka::Result<Vec<ConsumerRecord>> {
        let consumer = self.kafka().await?.consumer_without_group().build().await?;
        self.read_with(consumer, offset, count).await
    }

    pub async fn read_with(
        &self,
        consumer: Consumer,
        offset: i64,
        count: usize,
    ) -> krafka::Result<Vec<ConsumerRecord>> {
        consumer.assign(&self.topic, vec![0]).await?;
        consumer.seek(&self.topic, 0, offset).await?;
        let records = read(&consumer, count).await?;
        consumer.close().await?;
        Ok(records)
    }

    /// A member of that group; what may be set of it is left to `change`.
    pub async fn join(
        &self,
        group: &str,
        change: impl FnOnce(ConsumerBuilder) -> ConsumerBuilder,
    ) -> krafka::Result<Member> {
        let seen = Arc::new(Seen::default());
        let builder = self
            .kafka()
            .await?
            .consumer(group)
            .auto_offset_reset(AutoOffsetReset::Earliest)
            .heartbeat_interval(Duration::from_millis(200))
            .rebalance_listener(seen.clone());
        let consumer = change(builder).build().await?;
        consumer.subscribe([&self.topic]).await?;
        Ok(Member { consumer, seen, values: Vec::new() })
    }
}

/// Polls until there are so many.
pub async fn read(consumer: &Consumer, count: usize) -> krafka::Result<Vec<ConsumerRecord>> {
    let mut records = Vec::new();
    let start = Instant::now();
    while records.len() < count && start.elapsed() < PATIENCE {
        records.extend(consumer.poll(POLL).await?);
    }
    assert_eq!(records.len(), count);
    Ok(records)
}

pub fn values_of(records: &[ConsumerRecord]) -> Vec<String> {
    records.iter().map(|record| record.value_str().unwrap_or("not text").to_owned()).collect()
}

/// "from", "from + 1", … to "end - 1".
pub fn numbers(range: std::ops::Range<i32>) -> Vec<String> {
    range.map(|i| i.to_string()).collect()
}

/// What a member was told of its partitions.
#[derive(Default)]
pub struct Seen {
    pub revoked: Mutex<BTreeSet<i32>>,
    pub lost: Mutex<BTreeSet<i32>>,
}

impl ConsumerRebalanceListener for Seen {
    async fn on_partitions_assigned(&self, _: &[TopicPartition]) {}

    async fn on_partitions_revoked(&self, partitions: &[TopicPartition]) {
        self.revoked.lock().unwrap().extend(partitions.iter().map(|one| one.partition));
    }

    async fn on_partitions_lost(&self, partitions: &[TopicPartition]) {
        self.lost.lock().unwrap().extend(partitions.iter().map(|one| one.partition));
    }
}

pub struct Member {
    pub consumer: Consumer,
    pub seen: Arc<Seen>,
    pub values: Vec<String>,
}

impl Member {
    pub async fn partitions(&self) -> BTreeSet<i32> {
        self.consumer.assignment().await.into_values().flatten().collect()
    }

    async fn poll(&mut self) -> krafka::Result<()> {
        self.values.extend(values_of(&self.consumer.poll(POLL).await?));
        Ok(())
    }
}

/// Polls, for a group moves on only while its members poll, until the member has so many partitions.
pub async fn until_alone(member: &mut Member, count: usize) -> Outcome {
    let start = Instant::now();
    while member.partitions().await.len() != count {
        assert!(start.elapsed() < PATIENCE, "it has {:?}", member.partitions().await);
        member.poll().await?;
    }
    Ok(())
}

/// Polls both until each has two of the four partitions, and both have read so much.
pub async fn until_shared(one: &mut Member, other: &mut Member, count: usize) -> Outcome {
    let start = Instant::now();
    loop {
        let (has, others) = (one.partitions().await, other.partitions().await);
        let is_shared = has.len() == 2 && others.len() == 2 && has.is_disjoint(&others);
        if is_shared && one.values.len() + other.values.len() >= count {
            return Ok(());
        }
        assert!(start.elapsed() < PATIENCE, "they have {has:?} and {others:?}");
        let (polled, other_polled) = tokio::join!(one.poll(), other.poll());
        polled?;
        other_polled?;
    }
}

/// So it must be answered.
pub fn refused<T: std::fmt::Debug>(result: krafka::Result<T>, expected: ErrorCode) {
    match result {
        Err(KrafkaError::Broker { code, .. }) => assert_eq!(code, expected),
        other => panic!("expected {expected:?}, not {other:?}"),
    }
}
