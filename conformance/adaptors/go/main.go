// franz-go's kmsg as a codec. A panic ends the process, and fails the vector.
package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"os"

	"github.com/twmb/franz-go/pkg/kmsg"
)

type request struct {
	Do, Direction, Hex string
	APIKey             *int16 `json:"api_key"`
	Version            int16
}

type message interface {
	SetVersion(int16)
	MaxVersion() int16
	ReadFrom([]byte) error
	AppendTo([]byte) []byte
}

func answer(r request) map[string]any {
	if r.Do == "name" {
		return map[string]any{"name": "kmsg 1.15.1 (Go)"}
	}
	if r.Do != "read" {
		return map[string]any{"lacks": "Kafka's JSON"}
	}
	if r.APIKey == nil || kmsg.RequestForKey(*r.APIKey) == nil {
		return map[string]any{"lacks": "the message"}
	}
	var m message = kmsg.RequestForKey(*r.APIKey)
	if r.Direction == "response" {
		m = kmsg.ResponseForKey(*r.APIKey)
	}
	if r.Version > m.MaxVersion() {
		return map[string]any{"lacks": "the version"}
	}
	m.SetVersion(r.Version)
	body, _ := hex.DecodeString(r.Hex)
	if err := m.ReadFrom(body); err != nil {
		return map[string]any{"refused": err.Error()}
	}
	return map[string]any{"hex": hex.EncodeToString(m.AppendTo(nil))}
}

func main() {
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			panic(err)
		}
		out.Encode(answer(r))
	}
}
