package host

import "sync"

// maxKnownPrograms is how many programs are remembered for a session; when there
// are more, all are sent again.
const maxKnownPrograms = 10_000

// knownPrograms are the programs that a session was given. It is a hint: a plugin
// may forget them and ask again.
type knownPrograms struct {
	session *session

	mu  sync.Mutex
	ids map[[32]byte]struct{}
}

// lacks says which programs the plugin does not have; nil means all.
func (k *knownPrograms) lacks(programs []MatchProgram) []bool {
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

func (k *knownPrograms) add(id [32]byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.addLocked(id)
}

func (k *knownPrograms) addLocked(id [32]byte) {
	if k.ids == nil || len(k.ids) >= maxKnownPrograms {
		k.ids = map[[32]byte]struct{}{}
	}
	k.ids[id] = struct{}{}
}

// learn notes that the plugin has the programs but the needed ones.
func (k *knownPrograms) learn(programs []MatchProgram, needed []uint32) {
	missing := make(map[uint32]bool, len(needed))
	for _, n := range needed {
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

// drop notes that the plugin has lost some.
func (k *knownPrograms) drop(programs []MatchProgram, needed []uint32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, n := range needed {
		delete(k.ids, programs[n].ID)
	}
}
