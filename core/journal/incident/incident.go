// Package incident keeps what happened to a journal and needs a decision of an
// operator: acknowledged events may be missing. The incidents are lines of a file
// beside the journal, so they survive restarts, until an operator acknowledges them.
package incident

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// FileName is the name of the file in the directory of the journal.
const FileName = "journal.incidents"

// The kinds.
const (
	FileReplaced    = "file_replaced"    // a malformed file was replaced by a copy of its readable records
	JournalReplaced = "journal_replaced" // this journal was created or put in the place of another one
	RecordsMissing  = "records_missing"  // the journal ends before records that are known to exist
)

// Incident is one of them.
type Incident struct {
	At   time.Time `json:"at"`
	Kind string    `json:"kind"`
	Text string    `json:"text"` // a sentence with the numbers of records and the names of files
}

// maxIncidents bounds the file.
const maxIncidents = 100

// File is the list of incidents at Path. It is safe for concurrent use, also by
// several processes.
type File struct{ Path string }

// List returns the incidents that are not acknowledged, oldest first. Lines that
// cannot be read are left out.
func (f File) List() ([]Incident, error) {
	content, err := os.ReadFile(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Incident
	for line := range bytes.Lines(content) {
		var i Incident
		if json.Unmarshal(line, &i) == nil {
			out = append(out, i)
		}
	}
	return out, nil
}

// Add adds an incident and syncs the file. A kind with a text that is listed is not
// added again.
func (f File) Add(i Incident) error {
	known, err := f.List()
	if err != nil {
		return err
	}
	for _, k := range known {
		if k.Kind == i.Kind && k.Text == i.Text {
			return nil
		}
	}
	if len(known) >= maxIncidents {
		return nil
	}
	line, err := json.Marshal(i)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(f.Path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Sync(), file.Close())
}

// Acknowledge ends the incidents and returns them. Their file stays under another
// name.
func (f File) Acknowledge() ([]Incident, error) {
	list, err := f.List()
	if err != nil || len(list) == 0 {
		return list, err
	}
	kept := f.Path + ".acknowledged-" + time.Now().UTC().Format("20060102T150405.000000")
	if err := os.Rename(f.Path, kept); err != nil {
		return nil, fmt.Errorf("acknowledge the incidents of the journal: %w", err)
	}
	return list, nil
}
