package conformance

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"
)

// Put your decoder here: the bytes that it writes again, an error where it refuses, known=false for what it lacks.
var decode = func(apiKey *int, direction string, version int, body []byte) (again []byte, known bool, err error) {
	return nil, false, nil
}

func TestHostile(t *testing.T) {
	file, err := os.Open(os.Getenv("CONFORMANCE") + "/hostile.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 64<<20)
	asked := 0
	for lines.Scan() {
		var v struct {
			ID, Direction, Hex, Verdict string
			APIKey                      *int `json:"api_key"`
			Version                     int
		}
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		body, _ := hex.DecodeString(v.Hex)
		t.Run(v.ID, func(t *testing.T) {
			again, known, err := decode(v.APIKey, v.Direction, v.Version, body)
			if !known {
				return
			}
			asked++
			if v.Verdict == "invalid" && err == nil || v.Verdict == "valid" && hex.EncodeToString(again) != v.Hex {
				t.Errorf("%s: got %x, %v", v.Verdict, again, err)
			}
		})
	}
	if asked == 0 {
		t.Fatal("nothing was read: put your decoder into decode")
	}
}
