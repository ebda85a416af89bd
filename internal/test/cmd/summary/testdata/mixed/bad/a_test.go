package bad

import "testing"

func TestPass(t *testing.T) { t.Log("not shown") }

func TestFail(t *testing.T) {
	t.Run("sub", func(t *testing.T) { t.Error("shown") })
}
