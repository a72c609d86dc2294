package secret_test

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/host/secret"
	"github.com/guidonhq/guidon/core/host/settings"
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

// A plugin may print the password alone, a URL library escapes it, and an HTTP header has
// it in base64 behind the name of the user.
func TestSecretWithinAValueIsRedactedInEveryForm(t *testing.T) {
	const password = "p@ss w%rd/x+<\"9Zq!"
	t.Setenv("GUIDON_TEST_PW", password)
	c, err := secret.Resolve(settings.Instance{
		Config: map[string]any{"dsn": "postgres://user:${env:GUIDON_TEST_PW}@host/db"},
		Env:    settings.Env{Set: map[string]string{"DSN": "host=a password=${env:GUIDON_TEST_PW}x"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	quoted, _ := json.Marshal(map[string]string{"pw": password})
	forms := []string{
		password, "postgres://user:" + password + "@host/db", url.QueryEscape(password), url.PathEscape(password),
		url.UserPassword("user", password).String(), string(quoted), base64.StdEncoding.EncodeToString([]byte(password)),
	}
	for _, user := range []string{"", "u", "us", "use", "user"} {
		forms = append(forms, base64.StdEncoding.EncodeToString([]byte(user+":"+password)), base64.URLEncoding.EncodeToString([]byte(user+":"+password+"@host")))
	}
	for _, form := range forms {
		got := c.Redactor.Redact("the text " + form + " end")
		decoded, _ := base64.StdEncoding.DecodeString(strings.TrimSuffix(strings.TrimPrefix(got, "the text "), " end"))
		if !strings.Contains(got, "[secret]") || strings.Contains(got, "ss w") || strings.Contains(got, "9Zq") || strings.Contains(string(decoded), "w%rd") {
			t.Errorf("%s: %s", form, got)
		}
	}
	if got := c.Redactor.Redact("user and host are no secrets"); got != "user and host are no secrets" {
		t.Errorf("got %q", got)
	}
}

// The log is read line by line.
func TestLinesOfALongSecretAreRedacted(t *testing.T) {
	t.Parallel()
	var r secret.Redactor
	r.Add("-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG\nshort\n-----END KEY-----")
	if got := r.Redact("line MIIEvQIBADANBgkqhkiG of -----BEGIN KEY----- short"); got != "line [secret] of -----BEGIN KEY----- short" {
		t.Errorf("got %q", got)
	}
}
