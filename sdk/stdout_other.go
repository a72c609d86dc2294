//go:build !unix

package sdk

import "os"

// claimStdout keeps the pipe to the host for the handshake and lets everything
// else print to standard error.
func claimStdout() {
	handshakePipe = os.Stdout
	os.Stdout = os.Stderr
}
