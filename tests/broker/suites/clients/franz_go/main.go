// What each client of the matrix does, with franz-go; see ../python_clients.py.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const partitions = 6

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func made(bootstrap string, options ...kgo.Opt) *kgo.Client {
	client, err := kgo.NewClient(append(options, kgo.SeedBrokers(strings.Split(bootstrap, ",")...))...)
	check(err)
	return client
}

func main() {
	given := os.Args[2:]
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	switch os.Args[1] {
	case "produce":
		produce(ctx, given[0], given[1], given[2])
	case "consume":
		consume(ctx, given)
	case "transact":
		transact(ctx, given[0], given[1], given[2], given[3], given[4])
	}
}

func produce(ctx context.Context, bootstrap, topic, text string) {
	client := made(bootstrap, kgo.DefaultProduceTopic(topic))
	count, _ := strconv.Atoi(text)
	for number := 0; number < count; number++ {
		text := strconv.Itoa(number)
		client.Produce(ctx, kgo.KeyStringRecord(text, text), func(_ *kgo.Record, err error) { check(err) })
	}
	check(client.Flush(ctx))
	client.Close()
}

func consume(ctx context.Context, given []string) {
	protocol, bootstrap, topic, group, isolation := given[0], given[1], given[2], given[3], given[4]
	left, _ := strconv.Atoi(given[5])
	options := []kgo.Opt{
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.Balancers(kgo.RangeBalancer()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	}
	if protocol == "consumer" {
		options = append(options, kgo.ServerSideBalancer())
	}
	if isolation == "read_committed" {
		options = append(options, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	client := made(bootstrap, options...)
	for left > 0 && ctx.Err() == nil {
		client.PollFetches(ctx).EachRecord(func(record *kgo.Record) {
			fmt.Println(record.Partition, record.Offset, string(record.Value))
			if string(record.Value) == "stop" {
				left--
			}
		})
	}
	check(ctx.Err())
	check(client.CommitUncommittedOffsets(ctx))
	client.Close()
}

func begin(ctx context.Context, client *kgo.Client, topic, value string) error {
	if err := client.BeginTransaction(); err != nil {
		return err
	}
	return send(ctx, client, topic, value)
}

func send(ctx context.Context, client *kgo.Client, topic, value string) error {
	for partition := int32(0); partition < partitions; partition++ {
		record := &kgo.Record{Topic: topic, Partition: partition, Value: []byte(value)}
		if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
			return err
		}
	}
	return nil
}

func transact(ctx context.Context, bootstrap, topic, input, id, group string) {
	options := []kgo.Opt{
		kgo.TransactionalID(id), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.SeedBrokers(strings.Split(bootstrap, ",")...),
	}
	session, err := kgo.NewGroupTransactSession(append(options, kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(input), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.RequireStableFetchOffsets())...)
	check(err)
	client := session.Client()
	check(begin(ctx, client, topic, "one"))
	check(client.EndTransaction(ctx, kgo.TryCommit))
	check(begin(ctx, client, topic, "lost"))
	check(client.EndTransaction(ctx, kgo.TryAbort))
	read := 0
	for read < 5 { // the offsets that the session puts into its transaction
		fetches := session.PollFetches(ctx)
		check(fetches.Err0())
		read += fetches.NumRecords()
	}
	check(session.Begin())
	check(send(ctx, client, topic, "two"))
	committed, err := session.End(ctx, kgo.TryCommit)
	check(err)
	if !committed {
		check(fmt.Errorf("the transaction with offsets was aborted"))
	}
	second := made(bootstrap, options...)
	_, _, err = second.ProducerID(ctx)
	check(err)
	err = begin(ctx, client, topic, "fenced")
	if err == nil {
		err = client.EndTransaction(ctx, kgo.TryCommit)
	}
	if err == nil {
		fmt.Println("fenced: no")
	} else {
		fmt.Println("fenced:", err)
	}
	second.Close()
	session.Close()
}
