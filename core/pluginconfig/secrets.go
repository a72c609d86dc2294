package pluginconfig

import (
	"encoding/json"
	"fmt"

	"github.com/guidonhq/guidon/core/flags/sealed"
)

// box is the encrypted part of a record. The name binds the secrets to their instance.
type box struct {
	Instance string            `json:"instance"`
	Secrets  map[string]string `json:"secrets"`
}

// noProject is the project that the encryption is bound to: secrets of plugins have none.
const noProject = 0

// sealSecrets encrypts the secrets of an instance; "" for none.
func sealSecrets(keys *sealed.Keyring, name string, secrets map[string]string) (string, error) {
	raw, err := json.Marshal(box{name, secrets})
	if err != nil {
		return "", fmt.Errorf("encode the secrets: %w", err)
	}
	return keys.Seal(noProject, string(raw)), nil
}

// openSecrets decrypts the secrets of a record. It returns a map also with an error.
func openSecrets(keys *sealed.Keyring, r record) (map[string]string, error) {
	var b box
	text, err := keys.Open(noProject, r.Secrets)
	if err == nil {
		err = json.Unmarshal([]byte(text), &b)
	}
	if err == nil && (b.Instance != r.Name || !sealed.IsSealed(r.Secrets)) {
		err = fmt.Errorf("%w: they belong to another instance", sealed.ErrPayload)
	}
	if err != nil || b.Secrets == nil {
		return map[string]string{}, err
	}
	return b.Secrets, nil
}
