package good

import "testing"

func TestGood(t *testing.T) { t.Log("not to be seen") }

func TestSkipped(t *testing.T) { t.Skip("for a reason") }
