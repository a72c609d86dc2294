// Package definition has the stored forms of flags and cohorts that the evaluator
// compiles, and compares lists of them.
package definition

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Flag is the stored form of a flag, as far as the evaluator and clients that
// evaluate locally need it.
type Flag struct {
	ID                   int64
	ProjectID            int64
	Key                  string
	Name                 string
	Filters              json.RawMessage
	Active               bool
	Deleted              bool
	ExperienceContinuity bool
	Version              int64
	// ByDevice buckets persons by the id of their device, and not by the distinct
	// id. Conditions on groups ignore it. It disables ExperienceContinuity.
	ByDevice bool
	Runtime  Runtime  // the kind of clients that get the flag
	Contexts []string // evaluation contexts; without any the flag is for all
	Sealed   bool     // its payloads are encrypted; Filters has redacted ones
}

// Cohort is the stored form of a cohort: the people that match Filters, nested AND
// and OR groups, or a list of people if Static.
type Cohort struct {
	ID      int64
	Name    string
	Filters json.RawMessage // {"type":"AND"|"OR","values":[…]}; may be wrapped in {"properties":…}
	Static  bool
	Deleted bool
}

// Project is everything that the flags of one project are compiled from.
type Project struct {
	Flags      []Flag // deleted ones may be missing
	Cohorts    []Cohort
	GroupTypes map[string]int // group type name to index
	Revision   int64          // of the project, read before the definitions; 0 when unknown
}

// Runtime is the kind of clients that a flag is for, or the kind of a client.
type Runtime uint8

// The runtimes. A flag for AnyRuntime is for all clients.
const (
	AnyRuntime    Runtime = iota // of a flag: all; of a client: gets the flags of all runtimes
	ClientRuntime                // browsers and mobile applications
	ServerRuntime
	UnknownRuntime // of a client: gets the flags of AnyRuntime only
)

var runtimeNames = [...]string{AnyRuntime: "all", ClientRuntime: "client", ServerRuntime: "server", UnknownRuntime: "unknown"}

// String returns the name of the runtime in the API.
func (r Runtime) String() string { return runtimeNames[r] }

// ParseRuntime reads the name of a runtime, in any case. Other texts are AnyRuntime
// and false.
func ParseRuntime(name string) (Runtime, bool) {
	for r, known := range runtimeNames[:UnknownRuntime] {
		if strings.EqualFold(name, known) {
			return Runtime(r), true
		}
	}
	return AnyRuntime, false
}

func (f *Flag) id() int64       { return f.ID }
func (f *Flag) isDeleted() bool { return f.Deleted }

// equal compares the cheap and frequently changed fields first.
func (f *Flag) equal(g *Flag) bool {
	return f.Version == g.Version && f.Active == g.Active && f.Key == g.Key && f.Name == g.Name &&
		f.ProjectID == g.ProjectID && f.ExperienceContinuity == g.ExperienceContinuity && f.ByDevice == g.ByDevice &&
		f.Runtime == g.Runtime && f.Sealed == g.Sealed && slices.Equal(f.Contexts, g.Contexts) && bytes.Equal(f.Filters, g.Filters)
}

func (c *Cohort) id() int64       { return c.ID }
func (c *Cohort) isDeleted() bool { return c.Deleted }

func (c *Cohort) equal(d *Cohort) bool {
	return c.Name == d.Name && c.Static == d.Static && bytes.Equal(c.Filters, d.Filters)
}
