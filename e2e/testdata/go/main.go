// Command judge drives one unmodified posthog-go through everything an
// application does with it, and prints what the client saw as one JSON object.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/posthog/posthog-go"
)

type task struct {
	URL         string `json:"url"`
	ProjectKey  string `json:"project_key"`
	PersonalKey string `json:"personal_key"`
	Run         string `json:"run"`
	Probe       string `json:"probe"`
	IDs         []struct {
		ID         string         `json:"id"`
		Properties map[string]any `json:"properties"`
	} `json:"ids"`
}

type seen struct {
	Remote   map[string]map[string]any `json:"remote"`
	Local    map[string]map[string]any `json:"local"`
	Flag     any                       `json:"flag"`
	Failures []string                  `json:"failures"`
}

func main() {
	var t task
	if err := json.NewDecoder(os.Stdin).Decode(&t); err != nil {
		log.Fatal(err)
	}
	out := seen{Remote: map[string]map[string]any{}, Local: map[string]map[string]any{}, Failures: []string{}}
	remote, err := posthog.NewWithConfig(t.ProjectKey, posthog.Config{Endpoint: t.URL, BatchSize: 100, Interval: 200 * time.Millisecond})
	if err != nil {
		log.Fatal(err)
	}
	local, err := posthog.NewWithConfig(t.ProjectKey, posthog.Config{Endpoint: t.URL, PersonalApiKey: t.PersonalKey})
	if err != nil {
		log.Fatal(err)
	}
	for _, who := range t.IDs {
		ask := posthog.FeatureFlagPayloadNoKey{DistinctId: who.ID, PersonProperties: posthog.Properties(who.Properties)}
		if out.Remote[who.ID], err = remote.GetAllFlags(ask); err != nil {
			out.Failures = append(out.Failures, fmt.Sprintf("remote %s: %v", who.ID, err))
		}
		ask.OnlyEvaluateLocally = true
		if out.Local[who.ID], err = local.GetAllFlags(ask); err != nil {
			out.Failures = append(out.Failures, fmt.Sprintf("local %s: %v", who.ID, err))
		}
	}
	stored := t.Run + "-stored"
	send := func(m posthog.Message) {
		if err := remote.Enqueue(m); err != nil {
			out.Failures = append(out.Failures, err.Error())
		}
	}
	send(posthog.Identify{DistinctId: stored, Properties: posthog.Properties{"plan": "pro", "age": 42}})
	for n := range 25 {
		send(posthog.Capture{DistinctId: fmt.Sprintf("%s-user-%d", t.Run, n%5), Event: "ordered",
			Properties: posthog.Properties{"n": n, "note": `naïve 💻 "quoted"`}})
	}
	send(posthog.Alias{DistinctId: stored, Alias: t.Run + "-alias"})
	send(posthog.GroupIdentify{Type: "organization", Key: "acme", Properties: posthog.Properties{"seats": 12}})
	out.Flag, err = remote.GetFeatureFlag(posthog.FeatureFlagPayload{Key: t.Probe, DistinctId: stored,
		PersonProperties: posthog.Properties{"plan": "pro", "age": 42}})
	if err != nil {
		out.Failures = append(out.Failures, err.Error())
	}
	if err := remote.Close(); err != nil {
		out.Failures = append(out.Failures, err.Error())
	}
	_ = local.Close()
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		log.Fatal(err)
	}
}
