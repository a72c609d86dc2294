package sealed

import (
	"encoding/json"
	"errors"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/document"
)

const codeInvalid = "invalid_input"

// Apply returns the filters of a flag as they are stored: with all payloads
// encrypted if encrypted, else as they are. stored is the filters before the change.
// It fails with Invalid if the flag is no remote configuration, if r is nil, or for
// a payload that has to be sent.
func (r *Keyring) Apply(projectID int64, encrypted, remote bool, filters, stored json.RawMessage) (json.RawMessage, error) {
	switch {
	case !encrypted:
		return filters, CheckPlain(filters)
	case !remote:
		return nil, fault.Field("has_encrypted_payloads", codeInvalid, "Only the payloads of a remote configuration can be encrypted: is_remote_configuration must be true.")
	case r == nil:
		return nil, fault.Field("has_encrypted_payloads", codeInvalid, "This server has no key for encrypted payloads.")
	}
	return r.SealFilters(projectID, filters, stored)
}

var errUnknownKey = fault.New(fault.Unavailable, "encryption_key_unknown", "The payload was encrypted with a key that this server does not have.")

// Read returns a payload for a reader: an encrypted one decrypted if allowed, else
// Redacted. It fails with Unavailable encryption_key_unknown without its key.
func (r *Keyring) Read(projectID int64, payload string, allowed bool) (string, error) {
	switch {
	case !IsSealed(payload):
		return payload, nil
	case !allowed:
		return Redacted, nil
	case r == nil:
		return "", errUnknownKey
	}
	text, err := r.Open(projectID, payload)
	if errors.Is(err, ErrUnknownKey) {
		err = errUnknownKey.Because(err)
	}
	return text, err
}

// SealFilters returns filters whose payloads are all encrypted. A payload that is
// Redacted is taken from stored, the filters before the change. It fails with
// Invalid if stored has no such payload.
func (r *Keyring) SealFilters(projectID int64, filters, stored json.RawMessage) (json.RawMessage, error) {
	return rewrite(filters, func(name, payload string) (string, error) {
		kept, err := storedPayload(stored, name)
		switch {
		case payload == Redacted, payload == kept && err == nil:
			return kept, err
		}
		return r.Seal(projectID, payload), nil
	})
}

// CheckPlain fails with Invalid if filters have an encrypted payload or Redacted:
// the payloads of a flag whose payloads are no longer encrypted have to be sent.
func CheckPlain(filters json.RawMessage) error {
	_, err := rewrite(filters, func(_, payload string) (string, error) {
		if IsSealed(payload) || payload == Redacted {
			return "", fault.Field("filters", codeInvalid, "Send the payloads of the flag to store them without encryption.")
		}
		return payload, nil
	})
	return err
}

func storedPayload(stored json.RawMessage, name string) (payload string, err error) {
	_, err = rewrite(stored, func(n, p string) (string, error) {
		if n == name {
			payload = p
		}
		return p, nil
	})
	if err == nil && !IsSealed(payload) {
		err = fault.Fieldf("filters", codeInvalid, "There is no encrypted payload for %q to keep.", name)
	}
	return payload, err
}

// payloadsOf returns the document of filters and that of their payloads, nil without
// payloads. Unreadable filters, which are rejected elsewhere, have none.
func payloadsOf(filters json.RawMessage) (d, payloads *document.Object) {
	d, unreadable := document.Parse(filters)
	if unreadable != nil {
		return nil, nil
	}
	raw, _ := d.Given("payloads")
	payloads, unreadable = document.Parse(raw)
	if unreadable != nil {
		return nil, nil
	}
	return d, payloads
}

// rewrite replaces the payloads of filters, which are JSON texts. Filters without
// payloads are returned unchanged.
func rewrite(filters json.RawMessage, fn func(name, payload string) (string, error)) (json.RawMessage, error) {
	out, _, err := Rewrite(filters, fn)
	return out, err
}

// Rewrite replaces the payloads of filters, which are JSON texts, by those that fn
// returns. Filters in which nothing changes are returned unchanged, with false.
func Rewrite(filters json.RawMessage, fn func(name, payload string) (string, error)) (out json.RawMessage, changed bool, err error) {
	d, payloads := payloadsOf(filters)
	if payloads == nil {
		return filters, false, nil
	}
	for _, name := range payloads.Names {
		value, _ := payloads.Get(name)
		text, isText := document.Text(value)
		if !isText {
			text = string(value)
		}
		next, err := fn(name, text)
		if err != nil {
			return nil, false, err
		}
		if next != text {
			changed = true
			payloads.Set(name, document.Quote(next))
		}
	}
	if !changed {
		return filters, false, nil
	}
	d.Set("payloads", payloads.Raw())
	return d.Raw(), true, nil
}

// Hide returns filters with Redacted in the place of every payload, and whether
// they had another one.
func Hide(filters json.RawMessage) (json.RawMessage, bool) {
	out, changed, _ := Rewrite(filters, func(string, string) (string, error) { return Redacted, nil }) // fn never fails
	return out, changed
}

// RewriteOperation is Rewrite for the payloads of a scheduled change, which are in
// its value. Of a change with payloads only its operation and its value are kept.
func RewriteOperation(raw json.RawMessage, fn func(name, payload string) (string, error)) (out json.RawMessage, changed bool, err error) {
	var op struct {
		Operation string          `json:"operation"`
		Value     json.RawMessage `json:"value"`
	}
	if readable := json.Unmarshal(raw, &op) == nil; !readable {
		return raw, false, nil
	}
	op.Value, changed, err = Rewrite(op.Value, fn)
	if err != nil || !changed {
		return raw, false, err
	}
	return document.Encode(op), true, nil
}

// SealOperation returns a scheduled change whose payloads are encrypted.
func (r *Keyring) SealOperation(projectID int64, raw json.RawMessage) (json.RawMessage, error) {
	out, _, err := RewriteOperation(raw, func(_, payload string) (string, error) { return r.Seal(projectID, payload), nil })
	return out, err
}

// OpenFilters returns filters with every payload in clear, except those of kept:
// filters of the same flag. It fails with Unavailable encryption_key_unknown without
// the key of one.
func (r *Keyring) OpenFilters(projectID int64, filters, kept json.RawMessage) (json.RawMessage, error) {
	return rewrite(filters, func(name, payload string) (string, error) {
		if own, err := storedPayload(kept, name); err == nil && own == payload {
			return payload, nil
		}
		return r.Read(projectID, payload, true)
	})
}
