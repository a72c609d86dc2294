package password_test

import (
	"context"
	"encoding/base64"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/argon2"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/signin/password"
)

func TestHash(t *testing.T) {
	t.Parallel()
	h := password.New()
	hash, err := h.Hash(t.Context(), "correct horse")
	if err != nil || !strings.HasPrefix(hash, "$argon2id$v=19$m=19456,t=2,p=1$") || password.IsOld(hash) {
		t.Fatalf("hash %s, %v", hash, err)
	}
	if again, _ := h.Hash(t.Context(), "correct horse"); again == hash {
		t.Error("two hashes have one salt")
	}
	for given, want := range map[string]bool{"correct horse": true, "correct Horse": false, "": false, "correct horse ": false} {
		if got, err := h.Matches(t.Context(), hash, given); got != want || err != nil {
			t.Errorf("Matches(%q) = %v, %v", given, got, err)
		}
	}
	if got, err := h.Matches(t.Context(), "", ""); got || err != nil {
		t.Errorf("no hash matches: %v, %v", got, err)
	}
	for _, damaged := range []string{"x", "$argon2id$v=19$m=1,t=1,p=1$$", strings.Replace(hash, "argon2id", "argon2i", 1), strings.Replace(hash, "m=19456", "m=99999999", 1), hash[:40]} {
		if ok, err := h.Matches(t.Context(), damaged, "correct horse"); ok || err == nil {
			t.Errorf("the damaged hash %q: %v, %v", damaged, ok, err)
		}
	}
}

// A hash with other parameters matches, and is replaced.
func TestOldParameters(t *testing.T) {
	t.Parallel()
	salt := []byte("0123456789abcdef")
	text := base64.RawStdEncoding.EncodeToString
	hash := "$argon2id$v=19$m=64,t=1,p=1$" + text(salt) + "$" + text(argon2.IDKey([]byte("correct horse"), salt, 1, 64, 1, 32))
	if ok, err := password.New().Matches(t.Context(), hash, "correct horse"); !ok || err != nil || !password.IsOld(hash) {
		t.Errorf("matches %v, %v; old %v", ok, err, password.IsOld(hash))
	}
}

// At most MaxRunning computations run, and a flood fails at once.
func TestFloodIsRefused(t *testing.T) {
	t.Parallel()
	h := password.New()
	ctx, cancel := context.WithCancel(t.Context())
	var busy, done atomic.Int64
	var all sync.WaitGroup
	for range 5 * (password.MaxRunning + password.MaxWaiting) {
		all.Go(func() {
			if _, err := h.Hash(ctx, "x"); fault.Is(err, fault.Unavailable) {
				busy.Add(1)
				if busy.Load() > 3*(password.MaxRunning+password.MaxWaiting) {
					cancel()
				}
			} else if err == nil {
				done.Add(1)
			}
		})
	}
	all.Wait()
	cancel()
	if busy.Load() == 0 {
		t.Errorf("no caller was refused; %d hashes", done.Load())
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for given, code := range map[string]string{
		"correct horse": "", "short": "too_short", "ééééééééé": "too_short", "éééééééééx": "", strings.Repeat("ab", 600): "too_long", "aaaaaaaaaaaa": "too_common",
		"1234567890": "too_common", "Password123!": "too_common", "ada@example.com": "too_common", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff": "invalid_input",
	} {
		err := password.Check(given, "Ada@Example.com")
		if got := fault.CodeOf(err); (err == nil) != (code == "") || code != "" && got != code {
			t.Errorf("Check(%q) = %v, want %q", given, err, code)
		}
	}
}

func BenchmarkMatches(b *testing.B) {
	h := password.New()
	for b.Loop() {
		_, _ = h.Matches(context.Background(), "", "correct horse")
	}
}
