package filewatch

import (
	"crypto/sha256"
	"os"
	"time"

	"github.com/guidonhq/guidon/core/config/yamlfile"
)

// Times without a change after which the config file counts as complete.
const (
	// replacedTime is for a file that was renamed to its name: it is complete already.
	replacedTime = 150 * time.Millisecond
	// writtenTime is for a file that was written in place: its writer may pause.
	writtenTime = 2 * time.Second
	// invalidTime is for a file written in place that is not YAML: the rest may follow.
	invalidTime = 6 * time.Second
	// openTime is for a file that a process still has open for writing.
	openTime = time.Minute
)

// noContent is the checksum of an empty or missing file.
var noContent [sha256.Size]byte

// fileState is the config file at one time.
type fileState struct {
	source  []byte            // the content
	sum     [sha256.Size]byte // of the content
	info    os.FileInfo       // nil for a missing file
	invalid bool              // not YAML
	open    bool              // a process has it open for writing
}

// Read returns the content of the file at path, nil if it cannot be read.
func Read(path string) []byte { return readState(path).source }

// readState returns the state of the file at path.
func readState(path string) fileState {
	if path == "" {
		return fileState{}
	}
	f, err := os.Open(path)
	if err != nil {
		return fileState{}
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return fileState{}
	}
	open := isOpenForWriting(f)
	source, err := os.ReadFile(path)
	if err != nil || len(source) == 0 {
		return fileState{info: info}
	}
	return fileState{source: source, sum: sha256.Sum256(source), info: info, invalid: !yamlfile.Valid(source), open: open}
}

// stability decides when a changed file is complete, so that half a file is never
// read. It is not safe for concurrent use.
type stability struct {
	used  fileState // what the configuration was read from
	last  fileState // a change that is not read yet
	since time.Time // last is unchanged since then
}

// accept records that the configuration is read from the file in that state.
func (s *stability) accept(state fileState) { s.used, s.last = state, fileState{} }

// observe reports whether the file is to be read now. Otherwise it returns when to look
// again, 0 without a change. An empty or missing file is never read: it is being
// written.
func (s *stability) observe(now time.Time, state fileState) (read bool, wait time.Duration) {
	switch {
	case state.sum == s.used.sum || state.sum == noContent:
		s.last = fileState{}
		return false, 0
	case state.sum != s.last.sum:
		s.last, s.since = state, now
	}
	if left := s.needed(state) - now.Sub(s.since); left > 0 {
		return false, min(left, writtenTime/4)
	}
	s.accept(state)
	return true, 0
}

// needed returns the time without a change that a file in that state needs.
func (s *stability) needed(state fileState) time.Duration {
	replaced := s.used.info != nil && state.info != nil && !os.SameFile(s.used.info, state.info)
	switch {
	case state.open:
		return openTime
	case replaced:
		return replacedTime
	case state.invalid:
		return invalidTime
	}
	return writtenTime
}
