package eval

// Patterns returns the size of the compiled regular expressions of the set,
// without those of one flag and of one cohort; 0 is none.
func (s *Set) Patterns(exceptFlag, exceptCohort int64) int64 {
	total := int64(0)
	for i := range s.flags {
		if f := &s.flags[i]; f.id != exceptFlag {
			total += f.patterns
		}
	}
	for i := range s.cohorts {
		if c := &s.cohorts[i]; c.id != exceptCohort {
			total += c.patterns
		}
	}
	return total
}
