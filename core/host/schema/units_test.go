package schema_test

import (
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/host/schema"
	"github.com/guidonhq/guidon/core/host/secret"
	"github.com/guidonhq/guidon/sdk"
)

// A wrong duration or size is refused with the forms that are accepted, not with a
// pattern.
func TestUnitsAreNamedInWords(t *testing.T) {
	t.Parallel()
	s, err := schema.Compile(sdk.Schema(&struct {
		Wait     time.Duration `json:"wait"`
		MaxBytes int           `json:"max_bytes"`
		Main     struct {
			Wait time.Duration `json:"wait"`
		} `json:"main"`
		Name string `json:"name"`
	}{}))
	if err != nil {
		t.Fatal(err)
	}
	const duration, size = "must be a duration such as 250ms, 5s, 1m30s or 24h", "must be a size such as 512KiB, 20MB or 2GiB, or a number of bytes"
	for config, want := range map[string]string{
		`{"wait": "soon"}`: "/wait: " + duration, `{"wait": 30}`: "/wait: " + duration, `{"main": {"wait": "7d"}}`: "/main/wait: " + duration,
		`{"max_bytes": "64K"}`: "/max_bytes: " + size, `{"max_bytes": true}`: "/max_bytes: " + size, `{"name": 1}`: "/name: must be a string",
		`{"wait": "1m30s", "max_bytes": "64MiB"}`: "", `{"max_bytes": "10 MB"}`: "", `{"max_bytes": 10}`: "",
	} {
		got := ""
		for _, d := range s.Check(&secret.Config{JSON: []byte(config)}) {
			got += d.Pointer + ": " + d.Summary
		}
		if got != want || strings.Contains(got, "^") {
			t.Errorf("%s: got %q, want %q", config, got, want)
		}
	}
}
