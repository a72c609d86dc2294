package sdk_test

import (
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/units"
)

type withUnits struct {
	MaxBytes   int64         `json:"max_bytes" min:"1024" max:"1073741824"`
	QueueBytes uint32        `json:"queue_bytes"`
	Events     int           `json:"events"`
	Wait       time.Duration `json:"wait"`
}

func TestSizesAndDurationsInWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]withUnits{
		`{"max_bytes": "64MiB"}`:                      {MaxBytes: 64 << 20},
		`{"max_bytes": "10 MB", "queue_bytes": "1k"}`: {},
		`{"max_bytes": 2048, "queue_bytes": "1KiB"}`:  {MaxBytes: 2048, QueueBytes: 1024},
		`{"max_bytes": "1.5KiB", "wait": "1m30s"}`:    {MaxBytes: 1536, Wait: 90 * time.Second},
	} {
		var got withUnits
		err := sdk.DecodeConfig([]byte(text), &got)
		if refused := strings.Contains(text, "1k"); refused != (err != nil) || !refused && got != want {
			t.Errorf("%s: got %+v and %v, want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		`{"max_bytes": "64K"}`:    `/max_bytes: must be a size such as 512KiB, 20MB or 2GiB, or a number of bytes (got "64K")`,
		`{"max_bytes": "1KB"}`:    "/max_bytes: must be at least 1024",
		`{"max_bytes": "2GiB"}`:   "/max_bytes: must be at most",
		`{"max_bytes": true}`:     "/max_bytes: must be a size",
		`{"queue_bytes": "8GiB"}`: "/queue_bytes: must be a size",
		`{"queue_bytes": "-1"}`:   "/queue_bytes: must be a size",
		`{"events": "10MB"}`:      `/events: must be a whole number (got "10MB")`,
		`{"events": ""}`:          "/events: must be a whole number",
		`{"wait": "7d"}`:          `/wait: must be a duration such as 250ms, 5s, 1m30s or 24h (got "7d")`,
	} {
		if err := sdk.DecodeConfig([]byte(text), &withUnits{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	schema := string(sdk.Schema(&withUnits{}))
	if strings.Count(schema, `"string"`) != 3 || !strings.Contains(schema, `"minimum": 1024`) || !strings.Contains(schema, strings.ReplaceAll(units.SizePattern, `\`, `\\`)) {
		t.Errorf("schema %s", schema)
	}
}
