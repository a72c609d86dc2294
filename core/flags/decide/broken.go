package decide

import "sync"

// brokenDefinitions counts the flags and cohorts that cannot be evaluated. The
// zero value has none. It is safe for concurrent use.
type brokenDefinitions struct {
	mu       sync.Mutex
	projects map[int64]brokenCount
}

type brokenCount struct{ flags, cohorts int }

// set replaces the counts of a project.
func (b *brokenDefinitions) set(projectID int64, flags, cohorts int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.projects == nil {
		b.projects = map[int64]brokenCount{}
	}
	if flags+cohorts == 0 {
		delete(b.projects, projectID)
		return
	}
	b.projects[projectID] = brokenCount{flags, cohorts}
}

// sum returns the counts of all projects.
func (b *brokenDefinitions) sum() (total brokenCount) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range b.projects {
		total.flags += n.flags
		total.cohorts += n.cohorts
	}
	return total
}
