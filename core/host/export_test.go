package host

// CheckInstalledFiles looks for replaced executables, as housekeeping does.
func (h *Host) CheckInstalledFiles() {
	for _, s := range h.supervisors() {
		s.checkInstalledFile()
	}
}
