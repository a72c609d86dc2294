package csvtable_test

import (
	"testing"

	"github.com/guidonhq/guidon/core/web/csvtable"
)

func TestFormulasAreText(t *testing.T) {
	t.Parallel()
	got, err := csvtable.Encode([]string{"a", "b"}, [][]string{{"=1+1", " @x"}, {"plain, text", "\tx"}, {"", "＝1"}, {"two\nlines", "\"x\"\r\n"}})
	want := "a,b\r\n'=1+1,' @x\r\n\"plain, text\",'\tx\r\n,'＝1\r\n\"two\nlines\",\"\"\"x\"\"\r\n\"\r\n"
	if err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}
