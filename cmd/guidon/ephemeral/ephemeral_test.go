package ephemeral

import (
	"errors"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/definitionfile"
)

// An error of the seed file in a database that stays says that the next start would
// ignore the file.
func TestExplainNamesThePartlyFilledDatabase(t *testing.T) {
	of := &definitionfile.Error{File: "seed.yaml", Problems: []definitionfile.Problem{{Line: 5, Text: "flag b c"}}}
	if err := (Flags{}).Explain(of); !errors.Is(err, of) || !strings.Contains(err.Error(), "remove this database") {
		t.Error(err)
	}
	if err := (Flags{Ephemeral: true}).Explain(of); !errors.Is(err, of) || strings.Contains(err.Error(), "remove") {
		t.Error(err)
	}
	if err := (Flags{}).Explain(nil); err != nil {
		t.Error(err)
	}
}
