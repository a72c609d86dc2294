// Package archive is the file format of a backup.
//
// A backup is one stream: a tar file, compressed with Zstandard, and encrypted with
// age when there are recipients. Standard tools read it without Guidon:
// `age -d -i KEY FILE | zstd -d | tar x`. The stream is written in one pass, so it
// can go to a disk or to an object store without a temporary file.
//
//	header    a skippable Zstandard frame with JSON: format, version, database
//	content   Zstandard frames of a tar file: the parts, then manifest.json
//	footer    a skippable Zstandard frame with the SHA-256 of everything before it
//
// Files are split into parts of at most PartBytes, because tar needs the size of an
// entry before its content. The manifest lists each part with its size and SHA-256.
// A reader accepts an archive only if the footer and the manifest fit: each changed,
// missing or additional byte is refused. An encrypted archive is authenticated by
// age, too.
package archive

import (
	"errors"
	"fmt"
	"time"
)

// Format is the version of the format. A reader accepts no other one.
const Format = 1

// PartBytes is the largest part of an archive.
const PartBytes = 8 << 20

// ManifestName is the last entry of the tar file.
const ManifestName = "manifest.json"

// Bounds of what a reader keeps in memory.
const (
	maxHeaderBytes   = 64 << 10
	maxManifestBytes = 128 << 20
	maxWindowBytes   = 64 << 20
)

// Header begins an archive. It is read before the content and is not yet verified
// then.
type Header struct {
	Format    int       `json:"format"`
	Guidon    string    `json:"guidon"`   // the version of the program
	Database  string    `json:"database"` // sqlite or postgres
	Schema    int       `json:"schema"`   // the highest step of the schema
	CreatedAt time.Time `json:"created_at"`
}

// Part is a piece of a file of the backup.
type Part struct {
	Name   string `json:"name"` // the name of the file, a dot and a number of six digits
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Position is the cursor of a reader in a journal.
type Position struct {
	Name  string `json:"name"`
	Seq   uint64 `json:"seq"`
	Index uint32 `json:"index,omitempty"`
	Count uint64 `json:"count"`
}

// Cursor is the position up to which the database in the backup has processed a
// journal.
type Cursor struct {
	Name    string `json:"name"`
	Journal string `json:"journal"`
	Seq     uint64 `json:"seq"`
}

// Journal describes the journal in a backup.
type Journal struct {
	ID      string     `json:"id"`
	First   uint64     `json:"first"` // the oldest record
	Last    uint64     `json:"last"`  // the newest record
	Readers []Position `json:"readers"`
}

// Manifest describes the content of an archive.
type Manifest struct {
	Header
	// Steps are the applied steps of the schema.
	Steps []int `json:"steps"`
	// Cursors are the positions of the database in the journal.
	Cursors []Cursor `json:"cursors"`
	// Journal is nil if there was none.
	Journal *Journal `json:"journal"`
	// Settings identify the installation. They hold no secrets.
	Settings map[string]any `json:"settings"`
	// LeftOut names files with secrets, which only encrypted backups contain.
	LeftOut []string `json:"left_out"`
	Parts   []Part   `json:"parts"`
}

// Bytes is the size of all parts before compression.
func (m *Manifest) Bytes() (n int64) {
	for _, p := range m.Parts {
		n += p.Bytes
	}
	return n
}

// ErrDamaged is the error of an archive whose content does not fit its checksums,
// or that is incomplete.
var ErrDamaged = errors.New("the backup is damaged or incomplete")

// ErrNotArchive is the error of a file that is not a backup.
var ErrNotArchive = errors.New("this is not a backup of guidon")

// ErrEncrypted is the error of an encrypted archive that is opened without a key.
var ErrEncrypted = errors.New("the backup is encrypted: name the file with its age identity")

// ErrWrongKey is the error of an encrypted archive that was encrypted for other
// keys.
var ErrWrongKey = errors.New("no given age identity decrypts the backup: it was encrypted for another key")

// FormatError is the error of an archive of another format.
type FormatError struct {
	Format int
	Guidon string // the version that wrote it
}

// Error is one sentence for the operator.
func (e *FormatError) Error() string {
	return fmt.Sprintf("the backup has format %d, written by guidon %s; this version reads format %d", e.Format, e.Guidon, Format)
}

func damaged(cause string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrDamaged, fmt.Errorf(cause, args...))
}
