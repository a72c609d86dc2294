package eval

// Patterns returns the size of the compiled regular expressions of the set,
// without those of one flag and of one cohort; 0 is none.
func (s *Set) Patterns(exceptFlag, exceptCohort int64) int64 {
	total := int64(0)
	for _, f := range s.flags {
		if f != nil && f.id != exceptFlag {
			total += f.patterns
		}
	}
	for _, c := range s.cohorts {
		if c != nil && c.id != exceptCohort {
			total += c.patterns
		}
	}
	return total
}
