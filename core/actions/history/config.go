package history

import (
	"errors"
	"time"
)

// Config is what an operator can say about counting the history.
type Config struct {
	// MaxWait is how long an answer waits for a count that is being made;
	// then it says what is known so far.
	MaxWait time.Duration `koanf:"patience"`
	// Refresh is how long a count is believed that depends on more than events:
	// on what people, groups and cohorts are now, on plugins, on the date.
	Refresh time.Duration `koanf:"refresh"`
	// Days is how far back series may go, and how many days are kept.
	Days int `koanf:"days"`
	// ParallelRuns is how many actions are counted at once by reading events. Besides
	// there is one that an index answers.
	ParallelRuns int `koanf:"runs"`
	// PersonCacheBytes is about how much memory keeps who did an action.
	PersonCacheBytes int `koanf:"people_bytes"`
}

// DefaultConfig waits two seconds, reads events for one action at a
// time, and keeps a little more than a year.
func DefaultConfig() Config {
	return Config{MaxWait: 2 * time.Second, Refresh: 10 * time.Minute, Days: 400, ParallelRuns: 1, PersonCacheBytes: 32 << 20}
}

// Validate reports the first option that makes no sense.
func (c Config) Validate() error {
	switch {
	case c.MaxWait < 0:
		return errors.New("actions.history.patience must not be negative (0 never waits)")
	case c.Refresh < time.Second:
		return errors.New("actions.history.refresh must be a second or more")
	case c.Days < maxCountDays+1 || c.Days > 4000:
		return errors.New("actions.history.days must be between 94 and 4000")
	case c.ParallelRuns < 1:
		return errors.New("actions.history.runs must be at least 1")
	case c.PersonCacheBytes < 0:
		return errors.New("actions.history.people_bytes must not be negative (0 keeps none)")
	}
	return nil
}

// maxCountDays is more than three months have.
const maxCountDays = 93
