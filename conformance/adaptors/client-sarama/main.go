// Sarama as a client under test, for `coordwire conformance client -- ./client`.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

type task struct {
	Do        string
	Topic     string
	Partition int32
	Records   int
	Commit    bool
	Values    []string
	Group     string
	Offset    *int64
	End       string
	Seconds   float64
	Settings  map[string]any
}

type report struct {
	Name   string    `json:"name,omitempty"`
	Values []*string `json:"values,omitempty"`
	Sent   int       `json:"sent,omitempty"`
	Error  string    `json:"error,omitempty"`
	Lacks  string    `json:"lacks,omitempty"`
}

func (t task) text(name string) string { text, _ := t.Settings[name].(string); return text }

func (t task) brokers() []string { return strings.Split(t.text("bootstrap.servers"), ",") }

// Kafka's settings by this client's names; those that it lacks are left out.
func (t task) config() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.ClientID = t.text("client.id")
	config.Metadata.Retry.Max, config.Metadata.Retry.Backoff = 50, 100*time.Millisecond
	config.Producer.Retry.Max, config.Producer.Retry.Backoff = 50, 100*time.Millisecond
	config.Producer.Transaction.Retry.Max, config.Producer.Transaction.Retry.Backoff = 50, 100*time.Millisecond
	config.Consumer.Group.Rebalance.Retry.Max, config.Consumer.Group.Rebalance.Retry.Backoff = 50, 100*time.Millisecond
	config.Consumer.Retry.Backoff = 100 * time.Millisecond
	config.Consumer.Offsets.AutoCommit.Enable = false
	times := map[string]*time.Duration{
		"request.timeout.ms": &config.Net.ReadTimeout, "fetch.max.wait.ms": &config.Consumer.MaxWaitTime,
		"session.timeout.ms": &config.Consumer.Group.Session.Timeout, "transaction.timeout.ms": &config.Producer.Transaction.Timeout,
		"heartbeat.interval.ms": &config.Consumer.Group.Heartbeat.Interval,
	}
	for name, place := range times {
		if value, ok := t.Settings[name].(float64); ok {
			*place = time.Duration(value) * time.Millisecond
		}
	}
	if value, ok := t.Settings["max.partition.fetch.bytes"].(float64); ok {
		config.Consumer.Fetch.Default = int32(value)
	}
	if value, ok := t.Settings["batch.size"].(float64); ok {
		config.Producer.Flush.MaxMessages, config.Producer.Flush.Bytes = 0, int(value)
	}
	if t.text("auto.offset.reset") == "earliest" {
		config.Consumer.Offsets.Initial = sarama.OffsetOldest
	}
	if t.text("isolation.level") == "read_committed" {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	config.Consumer.Group.InstanceId = t.text("group.instance.id")
	return config
}

type handler struct {
	task   task
	result *report
	end    context.CancelFunc
}

func (handler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (h handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		var value *string
		if message.Value != nil {
			text := string(message.Value)
			value = &text
		}
		h.result.Values = append(h.result.Values, value)
		session.MarkMessage(message, "")
		if h.task.Commit {
			session.Commit()
		}
		if len(h.result.Values) >= h.task.Records {
			h.end()
		}
	}
	return nil
}

func (t task) consume(ctx context.Context, result *report) error {
	group, err := sarama.NewConsumerGroup(t.brokers(), t.text("group.id"), t.config())
	if err != nil {
		return err
	}
	defer group.Close()
	ctx, end := context.WithCancel(ctx)
	defer end()
	for ctx.Err() == nil {
		if err := group.Consume(ctx, []string{t.Topic}, handler{t, result, end}); err != nil {
			return err
		}
	}
	return nil
}

func (t task) produce(ctx context.Context, result *report) error {
	config := t.config()
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = map[string]sarama.RequiredAcks{"0": sarama.NoResponse, "1": sarama.WaitForLocal, "all": sarama.WaitForAll}[fmt.Sprint(t.Settings["acks"])]
	isTransaction := t.Do == "transact"
	if isTransaction || t.Settings["enable.idempotence"] == true {
		config.Producer.Idempotent, config.Net.MaxOpenRequests = true, 1
	}
	if isTransaction {
		config.Producer.Transaction.ID = t.text("transactional.id")
	}
	producer, err := sarama.NewAsyncProducer(t.brokers(), config)
	if err != nil {
		return err
	}
	defer producer.AsyncClose()
	if isTransaction {
		if err := producer.BeginTxn(); err != nil {
			return err
		}
	}
	for _, value := range t.Values {
		producer.Input() <- &sarama.ProducerMessage{Topic: t.Topic, Partition: t.Partition, Value: sarama.StringEncoder(value)}
	}
	for range t.Values {
		select {
		case <-producer.Successes():
			result.Sent++
		case failed := <-producer.Errors():
			return failed.Err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if !isTransaction {
		return nil
	}
	if t.Offset != nil {
		offsets := map[string][]*sarama.PartitionOffsetMetadata{t.Topic: {{Partition: t.Partition, Offset: *t.Offset}}}
		if err := producer.AddOffsetsToTxn(offsets, t.Group); err != nil {
			return err
		}
	}
	if t.End == "commit" {
		return producer.CommitTxn()
	}
	return producer.AbortTxn()
}

func (t task) report() (result report) {
	if t.Do == "name" {
		build, _ := debug.ReadBuildInfo()
		for _, module := range build.Deps {
			if module.Path == "github.com/IBM/sarama" {
				result.Name = "Sarama " + module.Version
			}
		}
		return
	}
	for name, value := range map[string]string{"group.protocol": "consumer", "auto.offset.reset": "none"} {
		if t.text(name) == value {
			return report{Lacks: name + "=" + value}
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(t.Seconds*float64(time.Second)))
	defer cancel()
	work := t.produce
	if t.Do == "consume" {
		work = t.consume
	}
	if err := work(ctx, &result); err != nil {
		result.Error = err.Error()
	}
	return
}

func main() {
	sarama.Logger = log.New(io.Discard, "", 0)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var given task
		if err := json.Unmarshal(lines.Bytes(), &given); err != nil {
			panic(err)
		}
		line, _ := json.Marshal(given.report())
		fmt.Println(string(line))
	}
}
