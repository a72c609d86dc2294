package secret_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/host/secret"
)

func TestExpandReplacesReferences(t *testing.T) {
	t.Setenv("GUIDON_TEST_X", "x-value")
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte("two\nlines\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		text, want string
		secret     bool
		err        string
	}{
		{"plain $x {y} ${", "plain $x {y} ${", false, ""},
		{"a ${env:GUIDON_TEST_X} b ${env:GUIDON_TEST_X}", "a x-value b x-value", true, ""},
		{"${file:" + file + "}", "two\nlines", true, ""},
		{"$${env:GUIDON_TEST_X}", "${env:GUIDON_TEST_X}", false, ""},
		{"${env:GUIDON_TEST_NONE}", "", true, "not set"},
		{"${file:" + file + "-missing}", "", true, "no such file"},
		{"${vault:x}", "", true, "want ${env:NAME} or ${file:/path}"},
	}
	for _, tt := range tests {
		got, isSecret, err := secret.Expand(tt.text)
		if tt.err == "" && (err != nil || got != tt.want) || isSecret != tt.secret ||
			tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%s: %q %t %v", tt.text, got, isSecret, err)
		}
	}
}
