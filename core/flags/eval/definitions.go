package eval

import "github.com/guidonhq/guidon/core/flags/eval/definition"

// Definition is the stored form of a flag.
type Definition = definition.Flag

// CohortDefinition is the stored form of a cohort.
type CohortDefinition = definition.Cohort

// ProjectDefinitions are the inputs of Compile for one project.
type ProjectDefinitions = definition.Project

// Runtime is the kind of clients that a flag is for, or the kind of a client.
type Runtime = definition.Runtime

// The runtimes. A flag for AnyRuntime is for all clients.
const (
	AnyRuntime     = definition.AnyRuntime
	ClientRuntime  = definition.ClientRuntime
	ServerRuntime  = definition.ServerRuntime
	UnknownRuntime = definition.UnknownRuntime
)

// ParseRuntime reads the name of a runtime, in any case. Other texts are AnyRuntime
// and false.
func ParseRuntime(name string) (Runtime, bool) { return definition.ParseRuntime(name) }
