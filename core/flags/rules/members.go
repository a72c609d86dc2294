package rules

import (
	"encoding/json"
	"strconv"

	"github.com/guidonhq/guidon/core/flags/document"
	"github.com/guidonhq/guidon/core/jsontext"
)

// members checks the members of filters besides condition sets, variants and
// payloads: the evaluator ignores those of a wrong type.
func (c *checker) members(d *document.Object) error {
	if c.linksOnly {
		return nil
	}
	for _, name := range []string{"early_exit", "feature_enrollment"} {
		if raw, ok := d.Given(name); ok && document.KindOf(raw) != "boolean" {
			return bad(CodeInvalid, "%s must be true or false, got %s", name, shown(raw))
		}
	}
	raw, ok := d.Given("holdout")
	if !ok {
		return nil
	}
	holdout, err := document.Parse(raw)
	if err != nil {
		return bad(CodeInvalid, "holdout must be an object or null, got %s", document.KindOf(raw))
	}
	share, ok := holdout.Given("exclusion_percentage")
	if !ok {
		return nil
	}
	if p, err := strconv.ParseFloat(string(share), 64); document.KindOf(share) != "number" || err != nil || p < 0 || p > 100 {
		return bad(CodeInvalid, "holdout.exclusion_percentage must be a number between 0 and 100, got %s", shown(share))
	}
	return nil
}

// checkText rejects strings with half a surrogate pair: strict readers of the
// document for local evaluation refuse all flags because of one.
func checkText(raw json.RawMessage) error {
	if jsontext.HasLoneSurrogate(raw) {
		return bad("surrogate_characters_not_allowed", "Surrogate characters are not allowed.")
	}
	return nil
}
