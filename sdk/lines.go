package sdk

import (
	"os"

	"github.com/guidonhq/guidon/sdk/internal/linefile"
)

// OpenLines opens or creates a file of lines for AppendLines. It removes what follows the
// last newline: a process that was killed while it wrote leaves such a torn line, and the
// next batch would continue it. Other files than regular ones stay unchanged. Several
// processes may have the file open, as during an upgrade: both functions lock it (flock).
func OpenLines(path string) (*os.File, error) { return linefile.Open(path) }

// AppendLines appends whole lines, such as Batch.NDJSON. If they cannot be written as a
// whole it removes the written part. It removes a torn line of another process first.
func AppendLines(f *os.File, lines []byte) error { return linefile.Append(f, lines) }
