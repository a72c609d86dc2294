package logstate

// Inspection is the state of a log that a look without changes finds.
type Inspection struct {
	// ID names the log; empty if it does not exist yet.
	ID string
	// Weaknesses are the reasons why the log may lose acknowledged records.
	Weaknesses []string
	// Ends has the number of the newest record of each partition.
	Ends []uint64
}
