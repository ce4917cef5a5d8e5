package main

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// What the checks are made of. What does not hold panics; main says why.

const patience = 60 * time.Second

// What main was told. The topic's name is this check's own; there is no such topic yet.
var stage struct{ Open, Guarded, HTTP, User, Password, Topic string }

// What clients warn of: no check expects it to be anything.
var warned struct {
	sync.Mutex
	bytes.Buffer
}

type warnedWriter struct{}

func (warnedWriter) Write(text []byte) (int, error) {
	warned.Lock()
	defer warned.Unlock()
	return warned.Buffer.Write(text)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func need[T any](value T, err error) T {
	must(err)
	return value
}

func equal(what string, actual, expected any) {
	if !reflect.DeepEqual(actual, expected) {
		panic(fmt.Sprintf("%s: expected %v, not %v", what, expected, actual))
	}
}

// Of all that a check asks.
var limit, stop = context.WithTimeout(context.Background(), patience)

func client(options ...kgo.Opt) *kgo.Client {
	all := append([]kgo.Opt{
		kgo.SeedBrokers(stage.Open),
		kgo.WithLogger(kgo.BasicLogger(warnedWriter{}, kgo.LogLevelWarn, nil)),
		kgo.DefaultProduceTopic(stage.Topic),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	}, options...)
	return need(kgo.NewClient(all...))
}

func admin() *kadm.Client {
	return kadm.NewClient(client())
}

func makeTopic(partitions int32) {
	need(admin().CreateTopic(limit, partitions, 1, nil, stage.Topic))
}

// The topic with records "0", "1", …, spread over its partitions, a millisecond apart.
func write(partitions, count int) {
	makeTopic(int32(partitions))
	producer := client()
	defer producer.Close()
	records := make([]*kgo.Record, count)
	for i := range records {
		text := []byte(strconv.Itoa(i))
		records[i] = &kgo.Record{Partition: int32(i % partitions), Key: text, Value: text, Timestamp: time.UnixMilli(int64(1_000 + i))}
	}
	must(producer.ProduceSync(limit, records...).FirstErr())
}

func at(offset int64) kgo.Opt {
	partitions := map[int32]kgo.Offset{0: kgo.NewOffset().At(offset)}
	return kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{stage.Topic: partitions})
}

// Reads until there are so many.
func read(consumer *kgo.Client, count int) []*kgo.Record {
	var records []*kgo.Record
	for len(records) < count {
		fetches := consumer.PollFetches(limit)
		for _, fault := range fetches.Errors() {
			panic(fault.Err)
		}
		records = append(records, fetches.Records()...)
	}
	equal("records", len(records), count)
	return records
}

func readFrom(offset int64, count int, options ...kgo.Opt) []*kgo.Record {
	consumer := client(append(options, at(offset))...)
	defer consumer.Close()
	return read(consumer, count)
}

func valuesOf(records []*kgo.Record) []string {
	values := make([]string, len(records))
	for i, record := range records {
		values[i] = string(record.Value)
	}
	return values
}

// "from", "from + 1", … to "end - 1".
func numbers(from, end int) []string {
	var all []string
	for i := from; i < end; i++ {
		all = append(all, strconv.Itoa(i))
	}
	return all
}

// A member of the group of this check. It polls by itself, and knows what it has and what was taken from it.
type member struct {
	*kgo.Client
	mutex         sync.Mutex
	has           map[int32]bool
	revoked, lost int
	values        []string
}

func join(options ...kgo.Opt) *member {
	one := &member{has: map[int32]bool{}}
	change := func(then func(partition int32)) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, changed map[string][]int32) {
			one.mutex.Lock()
			defer one.mutex.Unlock()
			for _, partition := range changed[stage.Topic] {
				then(partition)
			}
		}
	}
	one.Client = client(append([]kgo.Opt{
		kgo.ConsumerGroup(stage.Topic + "-group"),
		kgo.ConsumeTopics(stage.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.HeartbeatInterval(200 * time.Millisecond),
		kgo.OnPartitionsAssigned(change(func(partition int32) { one.has[partition] = true })),
		kgo.OnPartitionsRevoked(change(func(partition int32) { delete(one.has, partition); one.revoked++ })),
		kgo.OnPartitionsLost(change(func(partition int32) { delete(one.has, partition); one.lost++ })),
	}, options...)...)
	go func() {
		for {
			fetches := one.PollFetches(context.Background())
			if fetches.IsClientClosed() {
				return
			}
			one.mutex.Lock()
			one.values = append(one.values, valuesOf(fetches.Records())...)
			one.mutex.Unlock()
		}
	}()
	return one
}

func (one *member) partitions() []int32 {
	one.mutex.Lock()
	defer one.mutex.Unlock()
	var all []int32
	for partition := range one.has {
		all = append(all, partition)
	}
	slices.Sort(all)
	return all
}

func (one *member) read() []string {
	one.mutex.Lock()
	defer one.mutex.Unlock()
	return slices.Clone(one.values)
}

func until(claim string, isReached func() bool) {
	for end := time.Now().Add(patience); !isReached(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			panic("it did not come to this: " + claim)
		}
	}
}
