// What franz-go does while a broker has faults; see faults_run.py, which has the same of other clients.
//
// Usage: franz-go BOOTSTRAP TOPIC…
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const count = 6

type result struct {
	Failures []string `json:"failures"`
	Seen     []string `json:"seen"`
}

func main() {
	found := map[string]result{}
	for _, topic := range os.Args[2:] {
		found[topic] = run(os.Args[1], topic)
	}
	text, _ := json.Marshal(found)
	fmt.Println(string(text))
}

func run(bootstrap, topic string) result {
	outcome := result{Failures: []string{}}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	common := []kgo.Opt{
		kgo.SeedBrokers(bootstrap),
		kgo.ClientID("franz-go"),
		kgo.RequestTimeoutOverhead(700 * time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
		kgo.MetadataMinAge(20 * time.Millisecond),
	}
	producer, err := kgo.NewClient(append(common, kgo.DefaultProduceTopic(topic),
		kgo.ProduceRequestTimeout(100*time.Millisecond))...)
	if err != nil {
		panic(err)
	}
	for number := 0; number < count; number++ {
		record := kgo.StringRecord(strconv.Itoa(number))
		if err := producer.ProduceSync(ctx, record).FirstErr(); err != nil {
			outcome.Failures = append(outcome.Failures, err.Error())
		}
	}
	producer.Close()
	consumer, err := kgo.NewClient(append(common, kgo.ConsumeTopics(topic), kgo.ConsumerGroup(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(),
		kgo.FetchMaxWait(50*time.Millisecond))...)
	if err != nil {
		panic(err)
	}
	for len(outcome.Seen) < count && ctx.Err() == nil {
		fetches := consumer.PollFetches(ctx)
		fetches.EachRecord(func(record *kgo.Record) {
			outcome.Seen = append(outcome.Seen, string(record.Value))
		})
	}
	for attempt := 0; ; attempt++ {
		err := consumer.CommitUncommittedOffsets(ctx)
		if err == nil {
			break
		}
		if attempt > 20 {
			outcome.Failures = append(outcome.Failures, err.Error())
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	consumer.Close()
	return outcome
}
