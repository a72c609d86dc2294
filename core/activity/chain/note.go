package chain

import (
	"encoding/json"

	"github.com/guidonhq/guidon/core/jsontext"
)

// noteDetail is the detail of an entry about the log itself, in the shape of the
// details of other entries.
type noteDetail struct {
	ID      *string     `json:"id"`
	Changes []struct{}  `json:"changes"`
	Merge   *string     `json:"merge"`
	Trigger noteTrigger `json:"trigger"`
	Name    string      `json:"name"`
	ShortID *string     `json:"short_id"`
	Type    *string     `json:"type"`
}

type noteTrigger struct {
	JobType string         `json:"job_type"`
	JobID   string         `json:"job_id"`
	Payload map[string]any `json:"payload"`
}

func detailOf(activity, item string, payload map[string]any) string {
	out, err := jsontext.Marshal(noteDetail{Changes: []struct{}{}, Trigger: noteTrigger{activity, item, payload}})
	if err != nil {
		panic(err) // texts and numbers
	}
	return string(out)
}

// noted is the payload of an entry about the log itself.
type noted struct {
	Sequence int64  `json:"sequence"`
	Digest   string `json:"detail_sha256"`
	Hash     string `json:"hash"`
}

// readNote returns the payload of a detail; zero for another detail.
func readNote(detail string) noted {
	var d struct {
		Trigger struct {
			Payload noted `json:"payload"`
		} `json:"trigger"`
	}
	_ = json.Unmarshal([]byte(detail), &d) // a changed detail is reported as such
	return d.Trigger.Payload
}
