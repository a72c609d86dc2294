package accesslog

import (
	"fmt"
	"strings"

	"go.uber.org/zap"
)

// Connections logs the messages of the HTTP library about connections at debug
// level.
type Connections struct{ Log *zap.Logger }

// Printf logs a message.
func (c Connections) Printf(format string, args ...any) {
	if line := c.Log.Check(zap.DebugLevel, "connection"); line != nil {
		line.Write(zap.String("message", strings.TrimSpace(fmt.Sprintf(format, args...))))
	}
}
