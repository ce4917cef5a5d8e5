// franz-go carries out one check: `checks NAME STAGE`. Exit code 0 says that it could, and that it had nothing to warn of; else
// stderr tells.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

const partitions = 4

var checks = map[string]func(){
	"connect":              connect,
	"create topic":         createTopic,
	"create partitions":    createPartitions,
	"produce and fetch":    produceAndFetch,
	"gzip":                 func() { compress(kgo.GzipCompression()) },
	"snappy":               func() { compress(kgo.SnappyCompression()) },
	"lz4":                  func() { compress(kgo.Lz4Compression()) },
	"zstd":                 func() { compress(kgo.ZstdCompression()) },
	"idempotent":           idempotent,
	"record of 1 MB":       largeRecord,
	"from a middle offset": fromTheMiddle,
	"by time":              byTime,
	"group of two":         groupOfTwo,
	"rebalance":            rebalance,
	"commit and resume":    commitAndResume,
	"static member":        staticMember,
	"delete records":       deleteRecords,
	"describe":             describe,
	"change configuration": changeConfiguration,
	"SASL PLAIN": func() {
		login(func(user, password string) sasl.Mechanism {
			return plain.Auth{User: user, Pass: password}.AsMechanism()
		})
	},
	"SASL SCRAM-SHA-256": func() {
		login(func(user, password string) sasl.Mechanism {
			return scram.Auth{User: user, Pass: password}.AsSha256Mechanism()
		})
	},
	"SASL SCRAM-SHA-512": func() {
		login(func(user, password string) sasl.Mechanism {
			return scram.Auth{User: user, Pass: password}.AsSha512Mechanism()
		})
	},
}

func main() {
	defer stop()
	defer func() {
		if problem := recover(); problem != nil {
			fmt.Fprintln(os.Stderr, problem, "\n", warned.String())
			os.Exit(1)
		}
	}()
	must(json.Unmarshal([]byte(os.Args[2]), &stage))
	checks[os.Args[1]]()
	equal("warned", warned.String(), "")
}

func connect() {
	cluster := need(admin().BrokerMetadata(limit))
	equal("brokers", len(cluster.Brokers), 1)
	equal("controller", cluster.Controller, cluster.Brokers[0].NodeID)
	equal("a cluster without an id", cluster.Cluster == "", false)
	need(admin().ApiVersions(limit))
}

func createTopic() {
	configs := map[string]*string{"retention.ms": kadm.StringPtr("60000")}
	need(admin().ValidateCreateTopics(limit, 3, 1, configs, stage.Topic))
	made := need(admin().CreateTopic(limit, 3, 1, configs, stage.Topic))
	equal("partitions", made.NumPartitions, int32(3))
	equal("retention.ms", *made.Configs["retention.ms"].Value, "60000")
	found := need(admin().ListTopics(limit, stage.Topic))[stage.Topic]
	equal("id", found.ID, made.ID)
	equal("partitions", len(found.Partitions), 3)
	_, err := admin().CreateTopic(limit, 3, 1, nil, stage.Topic)
	equal("made twice", errors.Is(err, kerr.TopicAlreadyExists), true)
	need(admin().DeleteTopic(limit, stage.Topic))
	equal("deleted, and listed", need(admin().ListTopics(limit)).Has(stage.Topic), false)
}

func createPartitions() {
	makeTopic(1)
	must(need(admin().UpdatePartitions(limit, partitions, stage.Topic)).Error())
	equal("partitions", len(need(admin().ListTopics(limit, stage.Topic))[stage.Topic].Partitions), partitions)
	sent := need(client().ProduceSync(limit, &kgo.Record{Partition: partitions - 1, Value: []byte("last")}).First())
	equal("offset", sent.Offset, int64(0))
}

func produceAndFetch() {
	makeTopic(1)
	time := time.UnixMilli(1_234)
	headers := []kgo.RecordHeader{{Key: "h", Value: []byte("x")}, {Key: "h", Value: nil}, {Key: "", Value: []byte{}}}
	sent := client().ProduceSync(limit,
		&kgo.Record{Key: []byte("key"), Value: []byte("value"), Headers: headers, Timestamp: time},
		&kgo.Record{Key: nil, Value: []byte{}},
		&kgo.Record{Key: []byte{}, Value: nil})
	must(sent.FirstErr())
	for _, isolation := range []kgo.IsolationLevel{kgo.ReadUncommitted(), kgo.ReadCommitted()} {
		records := readFrom(0, 3, kgo.FetchIsolationLevel(isolation))
		equal("first", []string{string(records[0].Key), string(records[0].Value)}, []string{"key", "value"})
		equal("headers", records[0].Headers, headers)
		equal("time", records[0].Timestamp.UnixMilli(), time.UnixMilli())
		equal("no key, empty value", []bool{records[1].Key == nil, records[1].Value == nil}, []bool{true, false})
		equal("empty key, no value", []bool{records[2].Key == nil, records[2].Value == nil}, []bool{false, true})
	}
	brokerReads("value")
}

// What the broker itself makes of the first record.
func brokerReads(value string) {
	answer := need(http.Get(stage.HTTP + "/topics/" + stage.Topic + "/consume?partition=0&offset=0"))
	defer answer.Body.Close()
	text := string(need(io.ReadAll(answer.Body)))
	equal("HTTP reads "+value+" in "+text, strings.Contains(text, `"value":"`+value+`"`), true)
}

func compress(codec kgo.CompressionCodec) {
	makeTopic(1)
	value := strings.Repeat("a text that is worth compressing ", 50)
	var records []*kgo.Record
	var expected []string
	for _, i := range numbers(0, 100) {
		records = append(records, kgo.StringRecord(value+i))
		expected = append(expected, value+i)
	}
	producer := client(kgo.ProducerBatchCompression(codec))
	must(producer.ProduceSync(limit, records...).FirstErr())
	producer.Close()
	read := readFrom(0, 100)
	equal("values", valuesOf(read), expected)
	equal("compressed", read[0].Attrs.CompressionType() != 0, true)
	brokerReads(value + "0")
}

// Small batches, many in flight: one that overtakes another would be seen.
func idempotent() {
	makeTopic(1)
	producer := client(kgo.ProducerLinger(0), kgo.ProducerBatchMaxBytes(512))
	var records []*kgo.Record
	for _, i := range numbers(0, 2_000) {
		records = append(records, kgo.StringRecord(i))
	}
	sent := producer.ProduceSync(limit, records...)
	must(sent.FirstErr())
	for i, record := range records {
		equal("offset", record.Offset, int64(i))
	}
	read := readFrom(0, 2_000)
	equal("values", valuesOf(read), numbers(0, 2_000))
	equal("without a producer id", read[0].ProducerID < 0, false)
}

func largeRecord() {
	makeTopic(1)
	value := strings.Repeat("x", 1_000_000)
	producer := client(kgo.ProducerBatchMaxBytes(2_000_000), kgo.ProducerBatchCompression(kgo.NoCompression()))
	must(producer.ProduceSync(limit, kgo.StringRecord(value), kgo.StringRecord("after")).FirstErr())
	// Smaller limits than the record do not keep a consumer from it.
	read := readFrom(0, 2, kgo.FetchMaxBytes(1_000), kgo.FetchMaxPartitionBytes(1_000))
	equal("values", valuesOf(read), []string{value, "after"})
}

func fromTheMiddle() {
	write(1, 10)
	equal("values", valuesOf(readFrom(7, 3)), numbers(7, 10))
	end := client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{stage.Topic: {0: kgo.NewOffset().AtEnd().Relative(-2)}}))
	equal("values", valuesOf(read(end, 2)), numbers(8, 10))
}

func byTime() {
	write(1, 3)
	offsetOf := func(listed kadm.ListedOffsets, err error) int64 {
		must(err)
		must(listed.Error())
		found, _ := listed.Lookup(stage.Topic, 0)
		return found.Offset
	}
	equal("at a time", offsetOf(admin().ListOffsetsAfterMilli(limit, 1_001, stage.Topic)), int64(1))
	// Where there is nothing so late this client says the end.
	equal("later", offsetOf(admin().ListOffsetsAfterMilli(limit, 5_000, stage.Topic)), int64(3))
	equal("start", offsetOf(admin().ListStartOffsets(limit, stage.Topic)), int64(0))
	equal("end", offsetOf(admin().ListEndOffsets(limit, stage.Topic)), int64(3))
	equal("committed", offsetOf(admin().ListCommittedOffsets(limit, stage.Topic)), int64(3))
	equal("largest time", offsetOf(admin().ListMaxTimestampOffsets(limit, stage.Topic)), int64(2))
	after := kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{stage.Topic: {0: kgo.NewOffset().AfterMilli(1_002)}})
	equal("values", valuesOf(read(client(after), 1)), []string{"2"})
}

func share(one, other *member) func() bool {
	return func() bool {
		all := append(one.partitions(), other.partitions()...)
		slices.Sort(all)
		return len(one.partitions()) == 2 && slices.Equal(all, []int32{0, 1, 2, 3})
	}
}

func groupOfTwo() {
	write(partitions, 0)
	one, other := join(), join()
	until("each has two partitions", share(one, other))
	producer := client()
	for i, value := range numbers(0, 100) {
		must(producer.ProduceSync(limit, &kgo.Record{Partition: int32(i % partitions), Value: []byte(value)}).FirstErr())
	}
	until("all is read", func() bool { return len(one.read())+len(other.read()) >= 100 })
	equal("shares", []int{len(one.read()), len(other.read())}, []int{50, 50})
	must(one.CommitUncommittedOffsets(limit))
	must(other.CommitUncommittedOffsets(limit))
	lags := need(admin().Lag(limit, stage.Topic+"-group"))
	must(lags.Error())
	equal("lag", lags[stage.Topic+"-group"].Lag.Total(), int64(0))
	one.Close()
	other.Close()
}

func rebalance() {
	write(partitions, 8)
	balancers := map[string]kgo.GroupBalancer{
		"range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(), "sticky": kgo.StickyBalancer(),
		"cooperative": kgo.CooperativeStickyBalancer(),
	}
	for name, balancer := range balancers {
		group := []kgo.Opt{kgo.ConsumerGroup(stage.Topic + name), kgo.Balancers(balancer)}
		one := join(group...)
		hasAll := func() bool { return len(one.partitions()) == partitions }
		until(name+": alone it has all", hasAll)
		other := join(group...)
		until(name+": two share", share(one, other))
		// Only a cooperative member keeps what it keeps.
		equal(name+": revoked", one.revoked, map[bool]int{true: 2, false: partitions}[balancer.IsCooperative()])
		other.Close()
		until(name+": it has all again", hasAll)
		one.Close()
		equal(name+": lost", one.lost, 0)
	}
}

func commitAndResume() {
	write(1, 10)
	group := []kgo.Opt{kgo.ConsumerGroup(stage.Topic + "-group"), kgo.ConsumeTopics(stage.Topic), kgo.DisableAutoCommit()}
	first := client(append(group, kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	records := first.PollRecords(limit, 5).Records()
	equal("values", valuesOf(records), numbers(0, 5))
	must(first.CommitRecords(limit, records...))
	first.Close()
	second := client(group...)
	equal("values", valuesOf(read(second, 5)), numbers(5, 10))
	second.Close()
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: stage.Topic, Partition: 0, At: 7, LeaderEpoch: 0, Metadata: "most of it"})
	must(admin().CommitAllOffsets(limit, stage.Topic+"-group", offsets))
	found, _ := need(admin().FetchOffsets(limit, stage.Topic+"-group")).Lookup(stage.Topic, 0)
	equal("offset", []any{found.At, found.LeaderEpoch, found.Metadata}, []any{int64(7), int32(0), "most of it"})
	deleted := need(admin().DeleteOffsets(limit, stage.Topic+"-group", offsets.TopicsSet()))
	must(deleted.Error())
	need(admin().DeleteGroup(limit, stage.Topic+"-group"))
}

func staticMember() {
	write(partitions, 8)
	other := join(kgo.InstanceID("the-other"))
	one := join(kgo.InstanceID("the-one"))
	until("two share", share(one, other))
	had := one.partitions()
	_, generation := one.GroupMetadata()
	// It says nothing of leaving, so nobody else gets what it has.
	one.Close()
	again := join(kgo.InstanceID("the-one"))
	until("it has partitions again", func() bool { return len(again.partitions()) > 0 })
	equal("partitions", again.partitions(), had)
	_, generationNow := again.GroupMetadata()
	equal("generation", generationNow, generation)
	again.Close()
	other.Close()
	left := need(admin().LeaveGroup(limit, kadm.LeaveGroup(stage.Topic+"-group").InstanceIDs("the-one", "the-other")))
	must(left.Error())
	need(admin().DeleteGroup(limit, stage.Topic+"-group"))
}

func deleteRecords() {
	write(1, 3)
	offsets := kadm.Offsets{}
	offsets.AddOffset(stage.Topic, 0, 2, -1)
	deleted, _ := need(admin().DeleteRecords(limit, offsets)).Lookup(stage.Topic, 0)
	equal("low watermark", []any{deleted.LowWatermark, deleted.Err}, []any{int64(2), nil})
	start := client(kgo.ConsumeTopics(stage.Topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	equal("values", valuesOf(read(start, 1)), []string{"2"})
}

func describe() {
	write(2, 2)
	group := stage.Topic + "-group"
	one := join(kgo.ClientID("a-client"))
	until("all is read", func() bool { return len(one.read()) == 2 })
	described := need(admin().DescribeGroups(limit, group))[group]
	must(described.Err)
	equal("group", []string{described.State, described.Protocol, described.Members[0].ClientID},
		[]string{"Stable", "cooperative-sticky", "a-client"})
	assigned, _ := described.Members[0].Assigned.AsConsumer()
	equal("assigned", len(assigned.Topics[0].Partitions), 2)
	listed := need(admin().ListGroups(limit, "Stable"))[group]
	equal("listed", []string{listed.GroupType, listed.ProtocolType, listed.State}, []string{"classic", "consumer", "Stable"})
	_, err := admin().DeleteGroup(limit, group)
	equal("deleted with a member", errors.Is(err, kerr.NonEmptyGroup), true)
	one.Close()
	broker := need(admin().ListBrokers(limit))[0].NodeID
	shown := need(need(admin().DescribeBrokerConfigs(limit, broker)).On(strconv.Itoa(int(broker)), nil))
	equal("a broker without settings", len(shown.Configs) == 0, false)
	missing, _ := admin().ListTopics(limit, stage.Topic+"-not")
	equal("of no topic", errors.Is(missing.Error(), kerr.UnknownTopicOrPartition), true)
}

func changeConfiguration() {
	makeTopic(1)
	change := func(op kadm.IncrementalOp, name string, value *string) error {
		changed := need(admin().AlterTopicConfigs(limit, []kadm.AlterConfig{{Op: op, Name: name, Value: value}}, stage.Topic))
		return changed[0].Err
	}
	retention := func() kadm.Config {
		shown := need(need(admin().DescribeTopicConfigs(limit, stage.Topic)).On(stage.Topic, nil))
		return shown.Configs[slices.IndexFunc(shown.Configs, func(one kadm.Config) bool { return one.Key == "retention.ms" })]
	}
	before := retention()
	must(change(kadm.SetConfig, "retention.ms", kadm.StringPtr("5000")))
	equal("set", []any{*retention().Value, retention().Source}, []any{"5000", kmsg.ConfigSourceDynamicTopicConfig})
	must(change(kadm.AppendConfig, "cleanup.policy", kadm.StringPtr("compact")))
	must(change(kadm.DeleteConfig, "retention.ms", nil))
	equal("deleted", []any{*retention().Value, retention().Source}, []any{*before.Value, before.Source})
	equal("unknown", errors.Is(change(kadm.SetConfig, "no.such.name", kadm.StringPtr("1")), kerr.InvalidConfig), true)
	// All at once, as older brokers took it.
	state := need(admin().AlterTopicConfigsState(limit, []kadm.AlterConfig{{Name: "retention.ms", Value: kadm.StringPtr("7000")}}, stage.Topic))
	must(state[0].Err)
	equal("whole", *retention().Value, "7000")
}

func login(mechanism func(user, password string) sasl.Mechanism) {
	guarded := func(password string) *kgo.Client {
		return client(kgo.SeedBrokers(stage.Guarded), kgo.SASL(mechanism(stage.User, password)))
	}
	known := guarded(stage.Password)
	need(kadm.NewClient(known).CreateTopic(limit, 1, 1, nil, stage.Topic))
	must(known.ProduceSync(limit, kgo.StringRecord("value")).FirstErr())
	err := guarded("not the password").Ping(limit)
	equal("with another password", errors.Is(err, kerr.SaslAuthenticationFailed), true)
	// It says so once for each try.
	warned.Reset()
}
