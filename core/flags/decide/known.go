package decide

import "time"

// Known are the properties of a person or group that were read last.
type Known struct {
	Properties []byte // a JSON object that must not be changed
	Found      bool   // false if the person or group did not exist
	At         time.Time
}

// KnownPeople keeps in memory what People returned last, in bounded memory. It
// forgets erased and merged persons at once.
type KnownPeople interface {
	// LastProperties returns the known properties of a person, false without any.
	LastProperties(projectID int64, distinctID string) (Known, bool)
	// LastGroupProperties does the same for a group.
	LastGroupProperties(projectID int64, groupType, groupKey string) (Known, bool)
}

// useKnown fills an evaluation with known properties, unless they are too old, and
// returns their age. ok is false if the data stays missing.
func (d *Decider) useKnown(kind int, k Known, known bool, fill func([]byte) error) (age time.Duration, ok bool) {
	if !known {
		return 0, false
	}
	age = max(d.now().Sub(k.At), 0)
	if age > d.cfg.KnownMaxAge || k.Found && fill(k.Properties) != nil {
		return 0, false
	}
	d.metrics.recordLookup(kind, "known", 0)
	d.metrics.recordAge(age)
	return max(age, 1), true
}
