package flags_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

// wireRequest is a recorded request of a real client.
type wireRequest struct {
	Client, Method, Path, Query string
	Headers                     map[string]string
	Status                      int
}

func recorded(t *testing.T) []wireRequest {
	t.Helper()
	file, err := os.Open("testdata/wire_local.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var list []wireRequest
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var r wireRequest
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

func TestRecordedRequestsForLocalEvaluation(t *testing.T) {
	t.Parallel()
	h := onOne(t)
	h.create(`{"key":"rec-on","filters":{"groups":[{"properties":[],"rollout_percentage":100}],"payloads":{"true":{"color":"blue","n":7}}}}`)
	h.create(`{"key":"rec-multi","filters":{"groups":[{"properties":[],"rollout_percentage":55.0}],"multivariate":{"variants":[{"key":"control","name":"","rollout_percentage":34},{"key":"red","name":"","rollout_percentage":66.0}]},"payloads":{"red":[1,2,3]}}}`)
	for i, r := range recorded(t) {
		t.Run(fmt.Sprintf("%d %s %s", i, r.Client, r.Path), func(t *testing.T) {
			h := h.in(t)
			h.key = ""
			var header []string
			for name, value := range r.Headers {
				header = append(header, name, value)
			}
			a := h.do(r.Method, r.Path+"?"+r.Query, "", header...)
			if r.Status == 304 { // the recorded tag is of another server
				a = h.do(r.Method, r.Path+"?"+r.Query, "", append(header, "If-None-Match", a.want(200).header.Get("ETag"))...)
			}
			a.want(r.Status)
			switch {
			case r.Status == 304:
			case strings.Contains(r.Path, "remote_config"):
				var payload string
				if a.into(&payload); payload != `{"color":"blue","n":7}` {
					t.Errorf("payload %s", a.body)
				}
			default:
				a.readableByOldClients()
			}
		})
	}
}

// readableByOldClients decodes a document for local evaluation into the types
// of the oldest clients: percentages are small integers, payloads strings.
func (a answer) readableByOldClients() {
	a.t.Helper()
	var doc struct {
		Flags []struct {
			Key     string `json:"key"`
			Active  bool   `json:"active"`
			Filters struct {
				Groups []struct {
					Rollout *uint8 `json:"rollout_percentage"`
				} `json:"groups"`
				Multivariate *struct {
					Variants []struct {
						Rollout *uint8 `json:"rollout_percentage"`
					} `json:"variants"`
				} `json:"multivariate"`
				Payloads map[string]string `json:"payloads"`
			} `json:"filters"`
		} `json:"flags"`
		GroupTypeMapping map[string]string `json:"group_type_mapping"`
	}
	a.into(&doc)
	if len(doc.Flags) != 2 || doc.GroupTypeMapping["0"] != "company" || doc.Flags[1].Filters.Payloads["red"] != "[1,2,3]" {
		a.t.Errorf("document %s", a.body)
	}
}

func BenchmarkWriteUntilVisible(b *testing.B) {
	for _, size := range []int{10, 1000} {
		b.Run(fmt.Sprintf("%d_flags", size), func(b *testing.B) {
			h := newServer(b, dbtest.SQLite(b))
			project := auth.Project{ID: 1}
			who := &auth.Principal{User: ada}
			for i := range size {
				h.createDirectly(who, project, fmt.Sprintf("flag-%d", i))
			}
			n := 0
			for b.Loop() {
				n++
				h.createDirectly(who, project, fmt.Sprintf("new-%d", n))
			}
		})
	}
}
