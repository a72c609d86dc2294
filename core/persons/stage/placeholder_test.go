package stage

import "testing"

func TestIsPlaceholder(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{
		"": true, "  ": true, "anonymous": true, "ANONYMOUS": true, `"guest"`: true, "'Null'": false, "'null'": true,
		"null": true, "None": true, "none": true, "NONE": false, "0": true, "00": false, "NaN": true, "Nan": false,
		"[object Object]": true, "00000000-0000-0000-0000-000000000000": true, " undefined ": true, "True": true,
		"alice": false, "id": true, "ids": false, `"alice"`: false, "'": false,
	} {
		if got := isPlaceholder(id); got != want {
			t.Errorf("isPlaceholder(%q) is %v", id, got)
		}
	}
}
