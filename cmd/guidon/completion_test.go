package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestCompletion(t *testing.T) {
	t.Parallel()
	s := tool{newServer(t)}
	s.start(t)
	s.expect(t, 0, "flag create beta-one")
	login := s.command("login", s.url, "--name", "staging")
	login.Stdin = strings.NewReader(s.personal)
	if out, err := login.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for line, want := range map[string]string{
		"fla":                           "flag",
		"flag expl":                     "explain",
		"flag list --act":               "--active",
		"flag list -o js":               "json",
		"flag list --output = ya":       "yaml",
		"flag get beta":                 "beta-one",
		"flag list --context sta":       "staging",
		"context use st":                "staging",
		"flag list --context staging -": "--active",
		"events ta":                     "tail",
		"completion fi":                 "fish",
		"flag get other":                "",
		"__comp":                        "",
	} {
		out, code := s.run(append([]string{"__complete", "--"}, strings.Fields(line)...)...)
		first, _, _ := strings.Cut(out, "\n")
		if code != 0 || first != want {
			t.Errorf("%s: %q, want %q (exit code %d)", line, out, want, code)
		}
	}
	script := s.expect(t, 0, "completion bash", "complete -o default -F _guidon guidon")
	cmd := exec.Command("bash", "-c", script+"\nCOMP_WORDS=(guidon flag get beta); COMP_CWORD=3; _guidon; echo \"${COMPREPLY[@]}\"")
	cmd.Env = append(s.command("version").Env, "PATH="+filepath.Dir(bin)+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "beta-one\n" {
		t.Errorf("bash: %q %v", out, err)
	}
	s.kill() // without a server there are no keys, and no failure
	s.expect(t, 0, "__complete -- flag get beta")
}

func TestManPages(t *testing.T) {
	t.Parallel()
	s := tool{newServer(t)}
	s.expect(t, 0, "man --dir "+s.dir, "pages")
	for page, want := range map[string]string{
		"guidon.1":      ".B flag",
		"guidon-flag.1": "guidon flag explain <flag> <distinct\\-id> [flags]",
		"guidon-key.1":  "\\-\\-project",
	} {
		text, err := os.ReadFile(filepath.Join(s.dir, page))
		if err != nil || !strings.Contains(string(text), want) || !strings.HasPrefix(string(text), ".TH GUIDON") {
			t.Errorf("%s: %v, no %q in %.600s", page, err, want, text)
		}
	}
}
