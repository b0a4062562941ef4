// franz-go as a client under test, for `coordwire conformance client -- ./client`.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

type task struct {
	Do        string
	Topic     string
	Partition int32
	Records   int
	Commit    bool
	Values    []string
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

func (t task) number(name string) (float64, bool) {
	value, ok := t.Settings[name].(float64)
	return value, ok
}

func (t task) flag(name string) bool { value, ok := t.Settings[name].(bool); return ok && value }

// Kafka's settings as this client's options; those that it lacks are left out.
func (t task) options() []kgo.Opt {
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(t.text("bootstrap.servers"), ",")...), kgo.ClientID(t.text("client.id")),
		kgo.RetryBackoffFn(func(int) time.Duration { return 100 * time.Millisecond }), kgo.DialTimeout(time.Second),
		kgo.RetryTimeout(12 * time.Second), kgo.MetadataMinAge(100 * time.Millisecond), kgo.DisableClientMetrics(),
		kgo.AlwaysRetryEOF(),
	}
	times := map[string]func(time.Duration) kgo.Opt{
		"request.timeout.ms":     kgo.RequestTimeoutOverhead,
		"delivery.timeout.ms":    func(d time.Duration) kgo.Opt { return kgo.RecordDeliveryTimeout(d) },
		"transaction.timeout.ms": func(d time.Duration) kgo.Opt { return kgo.TransactionTimeout(d) },
		"fetch.max.wait.ms":      func(d time.Duration) kgo.Opt { return kgo.FetchMaxWait(d) },
		"session.timeout.ms":     func(d time.Duration) kgo.Opt { return kgo.SessionTimeout(d) },
		"heartbeat.interval.ms":  func(d time.Duration) kgo.Opt { return kgo.HeartbeatInterval(d) },
	}
	for name, option := range times {
		if value, ok := t.number(name); ok {
			options = append(options, option(time.Duration(value)*time.Millisecond))
		}
	}
	sizes := map[string]func(int32) kgo.Opt{
		"batch.size":                func(n int32) kgo.Opt { return kgo.ProducerBatchMaxBytes(max(n, 1024)) },
		"fetch.max.bytes":           func(n int32) kgo.Opt { return kgo.FetchMaxBytes(n) },
		"max.partition.fetch.bytes": func(n int32) kgo.Opt { return kgo.FetchMaxPartitionBytes(n) },
	}
	for name, option := range sizes {
		if value, ok := t.number(name); ok {
			options = append(options, option(int32(value)))
		}
	}
	return options
}

// Errors that the client reports and then goes on after by itself.
func triesAgain(err error) bool {
	var reset *kgo.ErrDataLoss
	return errors.As(err, &reset) || kerr.IsRetriable(err) || errors.Is(err, kerr.RebalanceInProgress) ||
		errors.Is(err, kerr.IllegalGeneration) || errors.Is(err, kerr.UnknownMemberID)
}

func (t task) consume(ctx context.Context, result *report) error {
	resets := map[string]kgo.Offset{"earliest": kgo.NewOffset().AtStart(), "latest": kgo.NewOffset().AtEnd(), "none": kgo.NoResetOffset()}
	options := append(t.options(), kgo.ConsumerGroup(t.text("group.id")), kgo.ConsumeTopics(t.Topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(resets[t.text("auto.offset.reset")]), kgo.Balancers(kgo.RangeBalancer()))
	if t.text("group.protocol") == "consumer" {
		options = append(options, kgo.ServerSideBalancer())
	}
	if name := t.text("group.instance.id"); name != "" {
		options = append(options, kgo.InstanceID(name))
	}
	if t.text("isolation.level") == "read_committed" {
		options = append(options, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.CloseAllowingRebalance()
	for len(result.Values) < t.Records && ctx.Err() == nil {
		fetches := client.PollFetches(ctx)
		for _, failed := range fetches.Errors() {
			if ctx.Err() == nil && !triesAgain(failed.Err) {
				return failed.Err
			}
		}
		fetches.EachRecord(func(record *kgo.Record) {
			var value *string
			if record.Value != nil {
				text := string(record.Value)
				value = &text
			}
			result.Values = append(result.Values, value)
		})
		if t.Commit && fetches.NumRecords() > 0 {
			if err := client.CommitUncommittedOffsets(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t task) produce(ctx context.Context, result *report) error {
	options := append(t.options(), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0))
	acks := map[string]kgo.Acks{"0": kgo.NoAck(), "1": kgo.LeaderAck()}
	if level, ok := acks[fmt.Sprint(t.Settings["acks"])]; ok {
		options = append(options, kgo.RequiredAcks(level), kgo.DisableIdempotentWrite())
	} else if !t.flag("enable.idempotence") && t.Do == "produce" && t.Settings["enable.idempotence"] != nil {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	if t.Do == "transact" {
		options = append(options, kgo.TransactionalID(t.text("transactional.id")))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	if t.Do == "transact" {
		if err := client.BeginTransaction(); err != nil {
			return err
		}
	}
	records := make([]*kgo.Record, len(t.Values))
	for at, value := range t.Values {
		records[at] = &kgo.Record{Topic: t.Topic, Partition: t.Partition, Value: []byte(value)}
	}
	for _, each := range client.ProduceSync(ctx, records...) {
		if each.Err != nil {
			return each.Err
		}
		result.Sent++
	}
	if t.Do == "transact" {
		return client.EndTransaction(ctx, kgo.TransactionEndTry(t.End == "commit"))
	}
	return nil
}

func (t task) report() (result report) {
	switch {
	case t.Do == "name":
		build, _ := debug.ReadBuildInfo()
		for _, module := range build.Deps {
			if module.Path == "github.com/twmb/franz-go" {
				result.Name = "franz-go " + module.Version
			}
		}
		return
	case t.Offset != nil:
		return report{Lacks: "offsets in a transaction that are not those of its own consumer"}
	case t.text("group.remote.assignor") != "":
		return report{Lacks: "group.remote.assignor"}
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
