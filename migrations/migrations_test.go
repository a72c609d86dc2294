package migrations_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/guidonhq/guidon/migrations"
)

func TestBothDialectsHaveTheSameSteps(t *testing.T) {
	t.Parallel()
	lite, err := migrations.Load(migrations.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	pg, err := migrations.Load(migrations.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	if len(lite) == 0 || len(lite) != len(pg) {
		t.Fatalf("sqlite has %d steps, postgres %d; each step needs both", len(lite), len(pg))
	}
	for i := range lite {
		if lite[i].Number != pg[i].Number || lite[i].Name != pg[i].Name {
			t.Errorf("sqlite has %04d_%s where postgres has %04d_%s",
				lite[i].Number, lite[i].Name, pg[i].Number, pg[i].Name)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		files map[string]string
		want  string // the numbers and names, or part of the error
	}{
		"numbers with gaps come ascending": {
			files: map[string]string{
				"0030_c.up.sql": "x", "0030_c.down.sql": "x",
				"0001_a.up.sql": "x", "0001_a.down.sql": "x",
			},
			want: "0001_a 0030_c",
		},
		"a stray file is named":         {files: map[string]string{"notes.sql": "x"}, want: `"notes.sql" is not named`},
		"zero is not a number":          {files: map[string]string{"0000_a.up.sql": "x"}, want: "needs a number from 0001"},
		"a number has one name":         {files: map[string]string{"0001_a.up.sql": "x", "0001_b.up.sql": "x"}, want: "used twice"},
		"a step needs its way back":     {files: map[string]string{"0001_a.up.sql": "x"}, want: "lacks its up or its down"},
		"an empty file is not a change": {files: map[string]string{"0001_a.up.sql": " \n"}, want: "is empty"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fsys := fstest.MapFS{}
			for file, text := range c.files {
				fsys[file] = &fstest.MapFile{Data: []byte(text)}
			}
			if got := parsed(migrations.Parse(fsys)); !strings.Contains(got, c.want) {
				t.Fatalf("got %q, want %q in it", got, c.want)
			}
		})
	}
}

func parsed(steps []migrations.Step, err error) string {
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, s := range steps {
		out = append(out, fmt.Sprintf("%04d_%s", s.Number, s.Name))
	}
	return strings.Join(out, " ")
}
