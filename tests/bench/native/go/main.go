// Decodes and encodes the messages of a folder, as often as standard input asks, and prints the processor's
// nanoseconds: a line "CASE decode|encode COUNT" each.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"syscall"

	"github.com/twmb/franz-go/pkg/kmsg"
)

type message interface {
	SetVersion(int16)
	ReadFrom([]byte) error
	AppendTo([]byte) []byte
}

var cases = map[string]struct {
	version int16
	fresh   func() message
}{
	"0": {4, func() message { return kmsg.NewPtrHeartbeatRequest() }},
	"1": {9, func() message { return kmsg.NewPtrJoinGroupRequest() }},
	"2": {9, func() message { return kmsg.NewPtrJoinGroupResponse() }},
	"3": {8, func() message { return kmsg.NewPtrOffsetCommitRequest() }},
	"4": {12, func() message { return kmsg.NewPtrMetadataResponse() }},
}

var sink message
var written []byte

func now() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}

func decoded(name string, wire []byte) message {
	made := cases[name].fresh()
	made.SetVersion(cases[name].version)
	if err := made.ReadFrom(wire); err != nil {
		panic(err)
	}
	return made
}

func run(name string, wire []byte, work string, count int) int64 {
	made := decoded(name, wire)
	if !bytes.Equal(made.AppendTo(nil), wire) {
		panic("other bytes than were decoded")
	}
	start := now()
	for i := 0; i < count; i++ {
		if work == "decode" {
			sink = decoded(name, wire)
		} else {
			written = made.AppendTo(make([]byte, 0, len(wire)))
		}
	}
	return now() - start
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var name, work string
		var count int
		if _, err := fmt.Sscan(lines.Text(), &name, &work, &count); err != nil {
			panic(err)
		}
		wire, err := os.ReadFile(os.Args[1] + "/" + name)
		if err != nil {
			panic(err)
		}
		fmt.Println(run(name, wire, work, count))
	}
}
