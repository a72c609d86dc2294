package clusterstatus_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/cmd/guidon/clusterstatus"
)

func TestPrint(t *testing.T) {
	t.Parallel()
	const answer = `{"clustered":true,"node":"b","free":["partitions/2"],"nodes":[
		{"id":"a","name":"one","state":"alive","beat_age_seconds":0.51,"partitions":["partitions/0"],"jobs":[]},
		{"id":"b","name":"two","state":"alive","beat_age_seconds":0.1,"partitions":["partitions/1"],"jobs":["replays"]}],
		"partitions":[
		{"partition":0,"node":"a","last_record":120,"readers":[{"name":"worker","records_behind":20,"oldest_at":"2026-01-01T00:00:00Z"},{"name":"sink/x","records_behind":0,"oldest_at":null}]},
		{"partition":1,"node":"b","last_record":7,"readers":[]},
		{"partition":2,"node":"","last_record":0,"readers":[],"error":"The log cannot be read right now."}]}`
	var out bytes.Buffer
	if err := clusterstatus.Print(&out, []byte(answer), time.Date(2026, 1, 1, 0, 0, 9, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(out.String()) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	got := strings.Join(lines, "\n")
	for _, want := range []string{
		"one alive - 500ms partitions/0 -", "two* alive - 100ms partitions/1 replays", "* answers; without a server: partitions/2",
		"PARTITION NODE RECORDS BEHIND", "0 one 120 worker 20 (9s)", "1 two* 7 -", "2 - 0 The log cannot be read right now.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
