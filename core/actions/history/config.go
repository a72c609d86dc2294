package history

import (
	"errors"
	"time"
)

// HistoryConfig is what an operator can say about counting the history.
type HistoryConfig struct {
	// Patience is how long an answer waits for a count that is being made;
	// then it says what is known so far.
	Patience time.Duration `koanf:"patience"`
	// Refresh is how long a count is believed that depends on more than events:
	// on what people, groups and cohorts are now, on plugins, on the date.
	Refresh time.Duration `koanf:"refresh"`
	// Days is how far back series may go, and how many days are kept.
	Days int `koanf:"days"`
	// Runs is how many actions are counted at once by reading events. Besides
	// there is one that an index answers.
	Runs int `koanf:"runs"`
	// PeopleBytes is about how much memory keeps who did an action.
	PeopleBytes int `koanf:"people_bytes"`
}

// DefaultHistoryConfig waits two seconds, reads events for one action at a
// time, and keeps a little more than a year.
func DefaultHistoryConfig() HistoryConfig {
	return HistoryConfig{Patience: 2 * time.Second, Refresh: 10 * time.Minute, Days: 400, Runs: 1, PeopleBytes: 32 << 20}
}

// Validate reports the first option that makes no sense.
func (c HistoryConfig) Validate() error {
	switch {
	case c.Patience < 0:
		return errors.New("actions.history.patience must not be negative (0 never waits)")
	case c.Refresh < time.Second:
		return errors.New("actions.history.refresh must be a second or more")
	case c.Days < countedDays+1 || c.Days > 4000:
		return errors.New("actions.history.days must be between 94 and 4000")
	case c.Runs < 1:
		return errors.New("actions.history.runs must be at least 1")
	case c.PeopleBytes < 0:
		return errors.New("actions.history.people_bytes must not be negative (0 keeps none)")
	}
	return nil
}

// countedDays is more than three months have.
const countedDays = 93
