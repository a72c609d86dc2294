//go:build e2e

package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/flags/flagstest"
)

// TestLocalEvaluationParity compares the local evaluation of the newest posthog-node
// with the answers of the server, for generated flags and persons of every kind. Two
// seeds are fixed; the third comes from the clock and is logged.
func TestLocalEvaluationParity(t *testing.T) {
	for _, seed := range []uint64{1, 2, uint64(time.Now().Unix())} {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			s := start(t)
			corpus := flagstest.Generate(seed, 150, 40)
			s.createCorpus(t, corpus)
			got := s.parity(t, corpus)
			compared, undecided := 0, 0
			for id, remote := range got.Remote {
				for key, value := range remote {
					local, ok := got.Local[id][key]
					if !ok {
						undecided++
						continue
					}
					if compared++; local != value {
						t.Errorf("%s for %s: local %v, remote %v", key, id, local, value)
					}
				}
			}
			t.Logf("%d values compared, %d that the client could not decide", compared, undecided)
			if compared < 1000 || undecided > compared/10 {
				t.Errorf("compared %d values, %d undecided: the test proves too little", compared, undecided)
			}
		})
	}
}

// createCorpus creates the group types, cohorts and flags of a corpus through the
// API. The server assigns its own ids, so references are rewritten. Corpora contain
// invalid definitions on purpose: those that the API refuses are left out.
func (s *server) createCorpus(t *testing.T, corpus *flagstest.Corpus) {
	t.Helper()
	for _, name := range []string{"company", "project"} {
		body := fmt.Sprintf(`{"api_key":%q,"event":"$groupidentify","distinct_id":"g","properties":{"$group_type":%q,"$group_key":"k"}}`, s.project, name)
		if err := s.status(http.MethodPost, "/capture/", bytes.NewReader([]byte(body)), http.StatusOK); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, time.Minute, "the group types are known", func() error {
		var document struct {
			GroupTypeMapping map[string]string `json:"group_type_mapping"`
		}
		s.do(t, http.MethodGet, "/api/projects/1/feature_flags/local_evaluation", nil, &document, http.StatusOK)
		if document.GroupTypeMapping["0"] != "company" || document.GroupTypeMapping["1"] != "project" {
			return fmt.Errorf("mapping %v", document.GroupTypeMapping)
		}
		return nil
	})
	ids := map[string]map[int64]int64{"cohort": {}, "flag": {}}
	for _, c := range corpus.Cohorts {
		if id, err := s.post(t, "cohorts", map[string]any{"name": fmt.Sprint("cohort ", c.ID), "filters": withServerIDs(c.Filters, ids)}); err == nil {
			ids["cohort"][c.ID] = id
		}
	}
	for _, f := range corpus.Flags {
		id, err := s.post(t, "feature_flags", map[string]any{"key": f.Key, "filters": withServerIDs(f.Filters, ids), "active": f.Active})
		if err == nil {
			ids["flag"][f.ID] = id
		}
	}
	if len(ids["cohort"]) == 0 || len(ids["flag"]) < 30 {
		t.Fatalf("only %d cohorts and %d flags passed the write rules", len(ids["cohort"]), len(ids["flag"]))
	}
}

func (s *server) post(t *testing.T, what string, body any) (int64, error) {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodPost, s.url+"/api/projects/1/"+what+"/", bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.personal)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, _ := io.ReadAll(res.Body)
	if res.StatusCode >= http.StatusInternalServerError {
		t.Fatalf("%s: %d %s", raw, res.StatusCode, answer)
	}
	if res.StatusCode != http.StatusCreated {
		return 0, errors.New(string(answer))
	}
	var created struct{ ID int64 }
	return created.ID, json.Unmarshal(answer, &created)
}

// withServerIDs copies filters with the references to cohorts and flags replaced by
// the ids of the server.
func withServerIDs(v any, ids map[string]map[int64]int64) any {
	raw, _ := json.Marshal(v)
	var copied any
	_ = json.Unmarshal(raw, &copied)
	replaceIDs(copied, ids)
	return copied
}

func replaceIDs(v any, ids map[string]map[int64]int64) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			replaceIDs(item, ids)
		}
	case map[string]any:
		switch v["type"] {
		case "cohort":
			v["value"] = ids["cohort"][number(v["value"])]
		case "flag":
			v["key"] = strconv.FormatInt(ids["flag"][number(v["key"])], 10)
		}
		for _, item := range v {
			replaceIDs(item, ids)
		}
	}
}

func number(v any) int64 {
	n, _ := strconv.ParseFloat(fmt.Sprint(v), 64)
	return int64(n)
}

func (s *server) parity(t *testing.T, corpus *flagstest.Corpus) clientResult {
	t.Helper()
	var got clientResult
	script(t, install(t, "node"), s.task(map[string]any{"people": corpus.People}), &got, "node", "parity.mjs", "posthog-node-newest")
	return got
}
