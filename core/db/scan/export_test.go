package scan

// WithParts makes l run this many parts at once, before its first scan.
func (l *Limiter) WithParts(parts int) *Limiter {
	l.parts = make(chan struct{}, parts-1)
	return l
}
