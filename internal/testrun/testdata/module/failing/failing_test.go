package failing

import "testing"

func TestFails(t *testing.T) {
	t.Run("inside", func(t *testing.T) { t.Error("the reason inside") })
}

func TestPassesBeside(t *testing.T) { t.Log("not to be seen") }
