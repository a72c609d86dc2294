package wire

import "sync"

// maxKnownPrograms is how many programs are remembered for a session. Above it, all
// are sent again.
const maxKnownPrograms = 10_000

// KnownPrograms remembers the programs that a session with a matcher has received. It
// is a hint: the plugin may have dropped them and request them again. The zero
// value is empty. Its methods are safe for concurrent use.
type KnownPrograms struct {
	mu  sync.Mutex
	ids map[[32]byte]struct{}
}

// missing returns for each program whether the plugin lacks it; nil means that it
// lacks all.
func (k *KnownPrograms) missing(programs []MatchProgram) []bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.ids) == 0 {
		return nil
	}
	out := make([]bool, len(programs))
	for i := range programs {
		_, known := k.ids[programs[i].ID]
		out[i] = !known
	}
	return out
}

// Add records that the plugin has a program.
func (k *KnownPrograms) Add(id [32]byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.addLocked(id)
}

func (k *KnownPrograms) addLocked(id [32]byte) {
	if k.ids == nil || len(k.ids) >= maxKnownPrograms {
		k.ids = map[[32]byte]struct{}{}
	}
	k.ids[id] = struct{}{}
}

// AddExcept records that the plugin has all programs except the requested ones.
func (k *KnownPrograms) AddExcept(programs []MatchProgram, requested []uint32) {
	missing := make(map[uint32]bool, len(requested))
	for _, n := range requested {
		missing[n] = true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range programs {
		if _, known := k.ids[programs[i].ID]; !known && !missing[uint32(i)] {
			k.addLocked(programs[i].ID)
		}
	}
}

// Remove records that the plugin has dropped the requested programs.
func (k *KnownPrograms) Remove(programs []MatchProgram, requested []uint32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, n := range requested {
		delete(k.ids, programs[n].ID)
	}
}
