//go:build unix && !linux

package process

// killSurvivors kills nothing: this platform does not show the environment of
// other processes.
func (p *Process) killSurvivors() int { return 0 }
