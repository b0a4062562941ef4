// What each client of the matrix does, with sarama; see ../python_clients.py.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
)

const partitions = 6

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func settings() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Producer.Idempotent = true
	config.Net.MaxOpenRequests = 1
	return config
}

func main() {
	given := os.Args[2:]
	switch os.Args[1] {
	case "produce":
		produce(given[0], given[1], given[2])
	case "consume":
		consume(given)
	case "transact":
		transact(given[0], given[1], given[2], given[3], given[4])
	}
}

func produce(bootstrap, topic, text string) {
	producer, err := sarama.NewSyncProducer(strings.Split(bootstrap, ","), settings())
	check(err)
	count, _ := strconv.Atoi(text)
	messages := make([]*sarama.ProducerMessage, 0, count)
	for number := 0; number < count; number++ {
		text := sarama.StringEncoder(strconv.Itoa(number))
		messages = append(messages, &sarama.ProducerMessage{Topic: topic, Key: text, Value: text})
	}
	check(producer.SendMessages(messages))
	check(producer.Close())
}

type reader struct {
	left *atomic.Int64
	end  context.CancelFunc
}

func (reader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (r reader) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		fmt.Println(message.Partition, message.Offset, string(message.Value))
		session.MarkMessage(message, "")
		if string(message.Value) == "stop" && r.left.Add(-1) == 0 {
			r.end()
		}
	}
	return nil
}

func consume(given []string) {
	bootstrap, topic, group, isolation := given[1], given[2], given[3], given[4]
	count, _ := strconv.Atoi(given[5])
	config := settings()
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	if isolation == "read_committed" {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	client, err := sarama.NewConsumerGroup(strings.Split(bootstrap, ","), group, config)
	check(err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	var left atomic.Int64
	left.Store(int64(count))
	for left.Load() > 0 && ctx.Err() == nil {
		check(client.Consume(ctx, []string{topic}, reader{&left, cancel}))
	}
	check(client.Close())
	if left.Load() > 0 {
		check(fmt.Errorf("%d stops are missing", left.Load()))
	}
}

func producer(bootstrap, id string) sarama.AsyncProducer {
	config := settings()
	config.Producer.Transaction.ID = id
	config.Producer.Partitioner = sarama.NewManualPartitioner
	made, err := sarama.NewAsyncProducer(strings.Split(bootstrap, ","), config)
	check(err)
	return made
}

func begin(producer sarama.AsyncProducer, topic, value string) error {
	if err := producer.BeginTxn(); err != nil {
		return err
	}
	for partition := int32(0); partition < partitions; partition++ {
		producer.Input() <- &sarama.ProducerMessage{
			Topic: topic, Partition: partition, Value: sarama.StringEncoder(value),
		}
		select {
		case <-producer.Successes():
		case failed := <-producer.Errors():
			return failed.Err
		}
	}
	return nil
}

func transact(bootstrap, topic, input, id, group string) {
	first := producer(bootstrap, id)
	check(begin(first, topic, "one"))
	check(first.CommitTxn())
	check(begin(first, topic, "lost"))
	check(first.AbortTxn())
	check(begin(first, topic, "two"))
	check(first.AddOffsetsToTxn(map[string][]*sarama.PartitionOffsetMetadata{
		input: {{Partition: 0, Offset: 5}},
	}, group))
	check(first.CommitTxn())
	second := producer(bootstrap, id)
	err := begin(first, topic, "fenced")
	if err == nil {
		err = first.CommitTxn()
	}
	if err == nil {
		fmt.Println("fenced: no")
	} else {
		fmt.Println("fenced:", err)
	}
	check(second.Close())
}
