// One member of a group by franz-go.
//
// Usage: member BOOTSTRAP GROUP NAME TOPICS SESSION_MS HEARTBEAT_MS. "close" on standard input ends it as a
// client that is closed does.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	bootstrap, group, name, topics := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	var lock sync.Mutex
	owned := map[string]bool{}
	change := func(partitions map[string][]int32, has bool) {
		lock.Lock()
		defer lock.Unlock()
		for topic, numbers := range partitions {
			for _, number := range numbers {
				if partition := fmt.Sprintf("%s-%d", topic, number); has {
					owned[partition] = true
				} else {
					delete(owned, partition)
				}
			}
		}
		names := make([]string, 0, len(owned))
		for partition := range owned {
			names = append(names, partition)
		}
		sort.Strings(names)
		fmt.Printf("assigned %d %s\n", time.Now().UnixMilli(), strings.Join(names, ","))
	}
	gained := func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) { change(partitions, true) }
	gaveUp := func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) { change(partitions, false) }
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap), kgo.ClientID(name), kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(strings.Split(topics, ",")...),
		kgo.SessionTimeout(milliseconds(os.Args[5])), kgo.HeartbeatInterval(milliseconds(os.Args[6])),
		kgo.OnPartitionsAssigned(gained), kgo.OnPartitionsRevoked(gaveUp), kgo.OnPartitionsLost(gaveUp),
	)
	if err != nil {
		panic(err)
	}
	go func() {
		for {
			client.PollFetches(context.Background())
		}
	}()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if strings.TrimSpace(lines.Text()) == "close" {
			break
		}
	}
	client.Close()
}

func milliseconds(text string) time.Duration {
	number, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return time.Duration(number) * time.Millisecond
}
