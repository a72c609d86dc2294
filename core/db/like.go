package db

import "strings"

// The escape character is one that no string literal of either database gives a
// meaning of its own; a backslash depends on the settings of the server.
var likeEscaper = strings.NewReplacer("!", "!!", "%", "!%", "_", "!_")

// EscapeLike escapes s for a LIKE pattern that matches s literally. The
// condition has to name the escape character: LIKE ? ESCAPE '!'.
func EscapeLike(s string) string { return likeEscaper.Replace(s) }

// Contains returns the pattern of the texts that contain s literally, for
// LIKE ? ESCAPE '!'.
func Contains(s string) string { return "%" + EscapeLike(s) + "%" }
