package history

import (
	"errors"
	"time"
)

// Config are the settings of counting.
type Config struct {
	// MaxWait is how long an answer waits for a running count before it returns
	// the count so far.
	MaxWait time.Duration `koanf:"patience"`
	// Refresh is how long a count stays valid that depends on more than events:
	// on persons, groups and cohorts, on plugins, on the date.
	Refresh time.Duration `koanf:"refresh"`
	// Days is how far back series go, and how many days are stored.
	Days int `koanf:"days"`
	// ParallelRuns is how many actions are counted in parallel by reading
	// events. One more is counted from an index.
	ParallelRuns int `koanf:"runs"`
	// Readers is how many parts of histories are read at a time, by all counts and
	// searches together. 0 is scan.MaxParts, and more have no effect.
	Readers int `koanf:"readers"`
	// PersonCacheBytes is the approximate memory for cached sets of persons.
	PersonCacheBytes int `koanf:"people_bytes"`
}

// DefaultConfig waits two seconds, reads events for one action at a time, and
// stores a little more than a year.
func DefaultConfig() Config {
	return Config{MaxWait: 2 * time.Second, Refresh: 10 * time.Minute, Days: 400, ParallelRuns: 1, PersonCacheBytes: 32 << 20}
}

// Validate reports the first invalid setting.
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
	case c.Readers < 0 || c.Readers > 64:
		return errors.New("actions.history.readers must be between 0 (0 depends on the processors) and 64")
	case c.PersonCacheBytes < 0:
		return errors.New("actions.history.people_bytes must not be negative (0 keeps none)")
	}
	return nil
}

// maxCountDays is the longest possible three months, and a day more.
const maxCountDays = 93
