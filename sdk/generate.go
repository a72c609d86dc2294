package sdk

// The contract is written in proto/ and compiled into pb/, which is committed.
// The tools come through the Go module proxy; nothing else is needed.

//go:generate sh -c "cd proto && go run github.com/bufbuild/buf/cmd/buf@v1.70.0 lint && go run github.com/bufbuild/buf/cmd/buf@v1.70.0 generate"
